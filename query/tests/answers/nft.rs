//! NFT endpoints over hand-made databases, against a plain model of the written rows.

use std::collections::HashMap;

use crate::hand_made::nfts::{IDS, NAMES, Nfts, Op, collection, escaped, ops};
use crate::hand_made::walk::Listing;
use crate::hand_made::{HandMade, account};
use chain::Account;
use proptest::prelude::*;
use proptest::sample::Index;
use schema::keys::{AccountKey, Role};
use schema::nft::fold::record;
use schema::nft::{
    Change, Collection, Entry, Mint, NewCollection, NewUri, NftLog, Outcome, Place, TokenName,
};
use schema::tx::AccountTxs;
use serde_json::{Value, json};
use store::key::All;
use store::{Order, Store as _};

const TOKENS: &str = "/indexer/nft/v1/tokens";

fn nfts(blocks: &[Vec<Op>]) -> Nfts {
    let mut nfts = Nfts::new("evm");
    for block in blocks {
        nfts.block(block);
    }
    nfts
}

/// All collections, then few ids in many of them, in few blocks and mostly of one account.
fn crowded() -> impl Strategy<Value = Vec<Vec<Op>>> {
    let owner = prop_oneof![5 => Just(0_u8), 1 => Just(1)];
    let mint = (0..NAMES.len(), 0_usize..3, owner).prop_map(|(c, id, owner)| Op::Mint(c, id, owner));
    let all = (0..NAMES.len()).map(Op::Collect).collect::<Vec<_>>();
    prop::collection::vec(prop::collection::vec(mint, 4..12), 1..4)
        .prop_map(move |mints| std::iter::once(all.clone()).chain(mints).collect())
}

/// Search terms with the normalized form of each.
const SEARCHES: [(&str, &str); 8] = [
    ("alpha", "alpha"),
    ("%20ALPHA%20c!", "alphac"),
    ("adog", "adog"),
    ("ibc%2Fab", "ibcab"),
    ("from%20AFAR", "fromafar"),
    ("%E7%8C%AB", "猫"),
    ("%C2%BD", "½"),
    ("nothing", "nothing"),
];

fn collection_lists(nfts: &Nfts) -> Vec<Listing> {
    let mut lists = vec![nfts.collections("", |_| true), nfts.collections("/by_name/%21%20", |_| false)];
    for n in 0..4 {
        let path = format!("/by_account/{}", account(n).to_bech32("init"));
        lists.push(nfts.collections(&path, |c| nfts.holds(n, c)));
    }
    for (text, part) in SEARCHES {
        lists.push(nfts.collections(&format!("/by_name/{text}"), |c| nfts.is_found(c, part)));
    }
    lists
}

fn token_lists(nfts: &Nfts) -> Vec<Listing> {
    let mut lists = Vec::new();
    for (by_height, order) in [(false, ""), (false, "&order_by=%20Token_ID"), (true, "&order_by=HEIGHT%20")] {
        for c in 0..=NAMES.len() {
            let target = format!("{TOKENS}/by_collection/{}?{order}", collection(c).to_hex());
            lists.push(nfts.tokens(target.clone(), by_height, |of, _, _| of == c));
            for (i, id) in IDS.iter().enumerate().filter(|(_, id)| !id.is_empty()) {
                let target = format!("{target}&token_id={}", escaped(id));
                lists.push(nfts.tokens(target, by_height, |of, which, _| (of, which) == (c, i)));
            }
        }
        for n in 0..4 {
            lists.extend(of_account(nfts, n, by_height, order));
        }
    }
    lists
}

fn of_account(nfts: &Nfts, n: u8, by_height: bool, order: &str) -> Vec<Listing> {
    let target = format!("{TOKENS}/by_account/{}?{order}", account(n).to_hex());
    let mut lists = vec![nfts.tokens(target.clone(), by_height, |_, _, owner| owner == n)];
    for (i, id) in IDS.iter().enumerate().filter(|(_, id)| !id.is_empty()) {
        let target = format!("{target}&token_id={}", escaped(id));
        lists.push(nfts.tokens(target, by_height, |_, id, owner| (id, owner) == (i, n)));
    }
    for c in 0..NAMES.len() {
        let target = format!("{target}&collection_addr={}", collection(c).to_bech32("init"));
        lists.push(nfts.tokens(target.clone(), by_height, |of, _, owner| (of, owner) == (c, n)));
        let both = format!("{target}&token_id={}", escaped(IDS[0]));
        lists.push(nfts.tokens(both, by_height, |of, id, owner| (of, id, owner) == (c, 0, n)));
    }
    lists
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 100, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn every_list_shows_its_rows_once_in_order_whatever_the_page(
        blocks in ops(), picks in prop::collection::vec(any::<Index>(), 40)
    ) {
        let nfts = nfts(&blocks);
        let lists = collection_lists(&nfts).into_iter().chain(token_lists(&nfts));
        for (list, pick) in lists.zip(picks.iter().cycle()) {
            list.check(&nfts.made, 1 + pick.index(list.rows.len() + 2), pick.index(2) == 0);
        }
    }

    #[test]
    fn a_cursor_of_tokens_is_valid_with_any_filter(blocks in crowded(), reverse: bool, by_height: bool) {
        let nfts = nfts(&blocks);
        let order = if by_height { "&order_by=height" } else { "" };
        let lists = of_account(&nfts, 0, by_height, order);
        let whole = lists[0].ordered(reverse);
        for from in lists.iter().filter(|list| list.rows.len() > 1) {
            let page = from.page(&nfts.made, &format!("pagination.reverse={reverse}&pagination.limit=1"));
            let (row, key) = (&page.rows[0], page.next.unwrap());
            let at = whole.iter().position(|one| one == row).unwrap();
            for to in lists.iter().filter(|list| !list.rows.is_empty()) {
                let page = to.page(&nfts.made, &format!("pagination.reverse={reverse}&pagination.key={key}"));
                let mut rest = to.ordered(reverse);
                rest.retain(|row| whole[at + 1..].contains(row));
                prop_assert_eq!(&page.rows, &rest, "{} then {}", from.target, to.target);
            }
        }
    }

    #[test]
    fn a_search_sees_the_current_names_whatever_has_changed_since_the_last_search(blocks in ops()) {
        let mut nfts = Nfts::new("evm");
        for block in &blocks {
            nfts.block(block);
            for (text, part) in SEARCHES {
                let list = nfts.collections(&format!("/by_name/{text}"), |c| nfts.is_found(c, part));
                prop_assert_eq!(&list.page(&nfts.made, "pagination.reverse=false").rows, &list.rows, "{}", text);
            }
        }
    }

    #[test]
    fn deployed_cursors_continue_after_their_row(blocks in ops(), reverse: bool, pick: Index) {
        let nfts = nfts(&blocks);
        let all = nfts.collections("", |_| true);
        let height = pick.index(10) as u64;
        let beyond = |row: &Value| {
            let at = row["height"].as_u64().unwrap();
            if reverse { at < height } else { at > height }
        };
        let key = base64(&format!(r#"{{"height":{height}}}"#));
        let page = all.page(&nfts.made, &format!("pagination.reverse={reverse}&pagination.key={key}"));
        prop_assert_eq!(page.rows, all.ordered(reverse).into_iter().filter(beyond).collect::<Vec<_>>());

        let id = IDS[pick.index(IDS.len())];
        let key = base64(&json!({"height": height, "token_id": id}).to_string());
        for list in token_lists(&nfts) {
            let by_height = list.target.contains("HEIGHT");
            let beyond = |row: &Value| {
                let (at, of) = (row["height"].as_u64().unwrap(), row["nft"]["token_id"].as_str().unwrap());
                let order = if by_height { (at, of).cmp(&(height, id)) } else { (of, at).cmp(&(id, height)) };
                if reverse { order.is_lt() } else { order.is_gt() }
            };
            let page = list.page(&nfts.made, &format!("pagination.reverse={reverse}&pagination.key={key}"));
            let wanted: Vec<Value> = list.ordered(reverse).into_iter().filter(beyond).collect();
            prop_assert_eq!(&page.rows, &wanted, "{}", list.target);
        }
    }
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE.encode(text)
}

/// One collection with the tokens 0 to 4, all of one account.
fn small() -> Nfts {
    nfts(&[vec![Op::Collect(1)], (0..5).map(|id| Op::Mint(1, id, 2)).collect()])
}

#[test]
fn records_have_the_form_that_clients_expect() {
    let nfts = small();
    let text = |target: &str| String::from_utf8(nfts.made.app.get(target).body().to_vec()).unwrap();
    let (address, creator) = (collection(1).to_hex(), account(1).to_bech32("init"));
    assert_eq!(
        text(&format!("/indexer/nft/v1/collections/{}", collection(1).to_bech32("init"))),
        format!(
            r#"{{"collection":{{"object_addr":"{address}","collection":{{"creator":"{creator}","name":"alpha-dogs!","origin_name":"","nfts":{{"handle":"","length":5}}}},"height":0,"timestamp":"1970-01-01T00:00:00.50562Z"}}}}"#
        )
    );
    let owner = account(2).to_bech32("init");
    assert_eq!(
        text(&format!("{TOKENS}/by_collection/{address}?token_id=a%2Fb")),
        format!(
            r#"{{"tokens":[{{"collection_addr":"{address}","collection_name":"alpha-dogs!","collection_origin_name":"","object_addr":"","owner":"{owner}","nft":{{"token_id":"a/b","uri":"uri:1/1"}},"height":2,"timestamp":"1970-01-01T00:00:02.50562Z"}}],"pagination":{{"previous_key":null,"next_key":null,"total":"1"}}}}"#
        )
    );
}

#[test]
fn invalid_requests_are_refused_and_unknown_items_are_empty_or_not_found() {
    let nfts = small();
    let address = collection(1).to_hex();
    for (target, status, named) in [
        ("/indexer/nft/v1/collections/by_account".to_owned(), 400, "by_account"),
        ("/indexer/nft/v1/collections/by_account/zz".to_owned(), 400, "account"),
        ("/indexer/nft/v1/collections/0x7e".to_owned(), 404, "nft collection not found: 0x00"),
        ("/indexer/nft/v1/collections/by_name/%zz".to_owned(), 400, "name"),
        (format!("{TOKENS}/by_account/notanaddress"), 400, "account"),
        (format!("{TOKENS}/by_account/0x1?collection_addr=zz"), 400, "collection_addr: zz"),
        (format!("{TOKENS}/by_account/0x1?order_by=name"), 400, "invalid order_by value 'name'"),
        (format!("{TOKENS}/by_collection/{address}?order_by=token%20id"), 400, "token_id, height"),
        (format!("{TOKENS}/by_collection/zz"), 400, "collection_addr"),
        ("/indexer/nft/v1/txs/zz/1".to_owned(), 400, "collection_addr"),
        (format!("/indexer/nft/v1/txs/{address}/%zz"), 400, "token_id"),
        (format!("/indexer/nft/v1/txs/{address}/a/b"), 404, "a/b"),
    ] {
        let (got, body) = nfts.made.get(&target);
        let message = body["message"].as_str().unwrap();
        assert!(got == status && message.contains(named), "{target}: {got} {message}");
    }
    for (target, member) in [
        ("/indexer/nft/v1/collections/by_account/0x7e".to_owned(), "collections"),
        (format!("{TOKENS}/by_account/0x7e?collection_addr={address}&token_id=1"), "tokens"),
        (format!("{TOKENS}/by_collection/0x7e"), "tokens"),
        (format!("/indexer/nft/v1/txs/{address}/no-such-token"), "txs"),
        ("/indexer/nft/v1/txs/0x7e/1".to_owned(), "txs"),
    ] {
        let (status, body) = nfts.made.get(&target);
        let none = json!({"previous_key": null, "next_key": null, "total": "0"});
        assert_eq!((status, &body[member], &body["pagination"]), (200, &json!([]), &none), "{target}");
    }
}

#[test]
fn a_cursor_between_two_tokens_is_the_same_with_every_filter() {
    let nfts = small();
    let of = collection(1).to_hex();
    let cursors = |target: String| {
        let page = |offset: usize| {
            nfts.made.get(&format!("{target}&pagination.limit=1&pagination.offset={offset}")).1
        };
        let total: usize = page(0)["pagination"]["total"].as_str().unwrap().parse().unwrap();
        let pages: Vec<_> = (0..total).map(page).collect();
        let between = |two: &[Value]| {
            let [id, next] = [0, 1].map(|at| two[at]["tokens"][0]["nft"]["token_id"].to_string());
            ((id, next), two[0]["pagination"]["next_key"].to_string())
        };
        pages.windows(2).map(between).collect::<HashMap<_, _>>()
    };
    for order in ["token_id", "height"] {
        let all = cursors(format!("{TOKENS}/by_collection/{of}?order_by={order}"));
        let held = (0..4).flat_map(|n| {
            let owner = account(n).to_hex();
            cursors(format!("{TOKENS}/by_account/{owner}?order_by={order}&collection_addr={of}"))
        });
        let pairs: Vec<_> = held.filter_map(|(two, key)| Some((key, all.get(&two)?.clone()))).collect();
        assert!(!pairs.is_empty() && pairs.iter().all(|(held, all)| held == all), "{order}: {pairs:?}");
    }
}

#[test]
fn a_cursor_of_another_order_or_list_is_refused() {
    let nfts = small();
    let address = collection(1).to_hex();
    let tokens = format!("{TOKENS}/by_collection/{address}?pagination.limit=1");
    let next = |target: &str| nfts.made.get(target).1["pagination"]["next_key"].as_str().map(str::to_owned);
    let (by_id, by_height) = (next(&tokens).unwrap(), next(&format!("{tokens}&order_by=height")).unwrap());
    let sequence = base64(r#"{"sequence":1}"#);
    let collection = base64(r#"{"height":1}"#);
    let token = base64(r#"{"height":1,"token_id":"1"}"#);
    let cut = &by_id[..by_id.len() - 4];
    for (target, key) in [
        (&tokens, by_height.as_str()),
        (&format!("{tokens}&order_by=height"), &by_id),
        (&tokens, &sequence),
        (&tokens, &collection),
        (&tokens, cut),
        (&"/indexer/nft/v1/collections?".to_owned(), &by_id),
        (&"/indexer/nft/v1/collections?".to_owned(), &token),
        (&"/indexer/tx/v1/txs?".to_owned(), &by_id),
    ] {
        let (status, body) = nfts.made.get(&format!("{target}&pagination.key={key}"));
        let message = body["message"].as_str().unwrap();
        assert!(
            status == 400 && message.contains("invalid pagination.key format"),
            "{target} {key}: {message}"
        );
    }
    let (_, first) = nfts.made.get(&tokens);
    assert_eq!(nfts.made.get(&format!("{tokens}&pagination.key=e30=")).1, first);
}

fn name_of(of: Account, id: &str) -> TokenName {
    TokenName { collection: of.as_bytes().to_vec(), token_id: id.to_owned() }
}

/// Collection 1 with one token, minted by transaction 1 and burnt by 2; there are Cosmos transactions too.
fn with_history(vm: &str, id: &str, object: Option<Account>) -> HandMade {
    let mut made = HandMade::new(vm, 1);
    let plan = crate::hand_made::TxPlan { involved: [].into(), signers: [].into(), types: [0].into() };
    made.add(&crate::hand_made::BlockPlan { txs: vec![plan; 3], evm_txs: Vec::new() });
    let mint = Mint {
        token: name_of(collection(1), id),
        owner: account(0).as_bytes().to_vec(),
        object: object.map_or_else(Vec::new, |object| object.as_bytes().to_vec()),
        ..Mint::default()
    };
    let new = NewCollection { address: collection(1).as_bytes().to_vec(), collection: Collection::default() };
    let changes = [
        (0, Change::Collection(new)),
        (1, Change::Mint(mint)),
        (2, Change::Burn(name_of(collection(1), id))),
    ];
    made.write(|txn| {
        for (ordinal, (tx, change)) in (0..).zip(changes) {
            let entry = Entry { time: 0, tx, change: Some(change) };
            record(txn, &Place::of_event(1, ordinal), entry).unwrap();
        }
        if let Some(object) = object {
            txn.push::<AccountTxs>(&(AccountKey(object), Role::Involved), 3).unwrap();
        }
    });
    made
}

#[test]
fn a_burnt_token_keeps_its_transactions_whatever_its_id() {
    for id in IDS.iter().filter(|id| !id.is_empty()) {
        let target = format!("/indexer/nft/v1/txs/{}/{}?", collection(1).to_hex(), escaped(id));
        // If tokens are objects, transactions are those of the object, even after a burn.
        let object = Account::from_bytes(&[5; 32]).unwrap();
        for (made, seqs) in
            [(with_history("wasm", id, None), vec![1, 2]), (with_history("move", id, Some(object)), vec![3])]
        {
            let (status, body) = made.get(&format!("{target}pagination.reverse=false"));
            let shown: Vec<u64> =
                body["txs"].as_array().unwrap().iter().map(|tx| tx["n"].as_u64().unwrap()).collect();
            assert_eq!((status, shown), (200, seqs), "{id:?}");
        }
    }
}

/// Entries of block 1.
fn write(made: &HandMade, changes: impl IntoIterator<Item = Change>) {
    made.write(|txn| {
        for (ordinal, change) in (0..).zip(changes) {
            let entry = Entry { time: 0, tx: 0, change: Some(change) };
            record(txn, &Place::of_event(1, ordinal), entry).unwrap();
        }
    });
}

#[test]
fn a_text_that_is_too_long_is_shown_as_such_and_never_as_none() {
    let made = HandMade::new("evm", 1);
    let row = Collection { name_too_long: true, ..Collection::default() };
    let new = NewCollection { address: collection(1).as_bytes().to_vec(), collection: row };
    let mint = |id: &str, uri: &str, outcome: Outcome| {
        let (token, owner) = (name_of(collection(1), id), account(0).as_bytes().to_vec());
        Change::Mint(Mint { token, owner, uri: uri.to_owned(), outcome: outcome.into(), ..Mint::default() })
    };
    let token = name_of(collection(1), "5");
    let renewed = NewUri { token, outcome: Outcome::TooLong.into(), ..NewUri::default() };
    let changes = [
        Change::Collection(new),
        mint("1", "", Outcome::TooLong),
        mint("2", "ipfs://2", Outcome::Known),
        mint("3", "", Outcome::Refused),
        mint("4", "", Outcome::Open),
        mint("5", "ipfs://5", Outcome::Known),
        Change::Uri(renewed),
    ];
    write(&made, changes);
    let of_collection = format!("{TOKENS}/by_collection/{}", collection(1).to_hex());
    let (_, body) = made.get(&format!("{of_collection}?pagination.reverse=false"));
    let shown: Vec<&Value> = body["tokens"].as_array().unwrap().iter().map(|token| &token["nft"]).collect();
    let expected = [
        json!({ "token_id": "1", "uri": "", "uri_truncated": true }),
        json!({ "token_id": "2", "uri": "ipfs://2" }),
        json!({ "token_id": "3", "uri": "" }),
        json!({ "token_id": "4", "uri": "" }),
        json!({ "token_id": "5", "uri": "", "uri_truncated": true }),
    ];
    assert_eq!(shown, expected.iter().collect::<Vec<_>>());
    let (_, body) = made.get(&format!("/indexer/nft/v1/collections/{}", collection(1).to_hex()));
    assert_eq!(body["collection"]["collection"]["name_truncated"], true);
}

#[test]
fn a_token_of_a_move_chain_shows_its_object() {
    let object = Account::from_bytes(&[7; 32]).unwrap();
    let made = HandMade::new("move", 1);
    let mint = Mint {
        token: name_of(collection(1), "Anemone #4"),
        owner: account(0).as_bytes().to_vec(),
        object: object.as_bytes().to_vec(),
        ..Mint::default()
    };
    let new = NewCollection { address: collection(1).as_bytes().to_vec(), collection: Collection::default() };
    write(&made, [Change::Collection(new), Change::Mint(mint)]);
    let (_, body) = made.get(&format!("{TOKENS}/by_account/{}?token_id=Anemone+%234", account(0).to_hex()));
    assert_eq!(body["tokens"][0]["object_addr"], object.to_hex());
    assert_eq!(body["pagination"]["total"], "1");
}

#[test]
fn after_a_rebuild_names_are_read_again() {
    let nfts = small();
    let search = "/indexer/nft/v1/collections/by_name/alpha";
    assert_eq!(nfts.made.get(search).1["pagination"]["total"], "1");
    let log = store::table::rows::<NftLog>(&*nfts.made.store.snapshot().unwrap(), &All, Order::Asc, 100);
    nfts.made.write(|txn| log.unwrap().iter().for_each(|(place, _)| txn.delete::<NftLog>(place)));
    schema::nft::rebuild::rebuild(&*nfts.made.store).unwrap();
    assert_eq!(nfts.made.get(search).1["pagination"]["total"], "0");
}

#[test]
fn a_missing_row_is_500_and_never_skipped() {
    let nfts = small();
    nfts.made.write(|txn| txn.delete::<schema::nft::Collections>(&AccountKey(collection(1))));
    for target in [
        "/indexer/nft/v1/collections".to_owned(),
        format!("{TOKENS}/by_account/{}", account(2).to_hex()),
        format!("{TOKENS}/by_collection/{}?order_by=height", collection(1).to_hex()),
    ] {
        assert_eq!(nfts.made.get(&target).0, 500, "{target}");
    }
}
