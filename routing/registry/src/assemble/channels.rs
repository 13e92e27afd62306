//! Assembly of channels from drafts of their ends.
//!
//! # Invariants
//!
//! * An end belongs to at most one channel; of two that claim it, the one from the better source stays.

use std::collections::BTreeMap;

use super::Assembly;
use crate::build::Builder;
use crate::draft::{ChannelDraft, EndDraft, Located, Source};
use crate::model::{Channel, End};

impl Assembly {
    pub(super) fn channels(&mut self, mut drafts: Vec<Located<ChannelDraft>>) {
        for draft in &mut drafts {
            normalize(&mut draft.part);
        }
        drafts.sort_by(|x, y| {
            let key = |draft: &Located<ChannelDraft>| {
                (draft.source, draft.part.a.clone(), draft.part.b.clone(), draft.place.clone())
            };
            key(x).cmp(&key(y))
        });
        let (claims, patches): (Vec<_>, Vec<_>) =
            drafts.into_iter().partition(|draft| draft.part.b.is_some());
        let mut claimed = Claimed::default();
        for claim in claims {
            self.claim(&mut claimed, claim);
        }
        for patch in patches {
            match claimed.at.get(&patch.part.a).copied() {
                Some(index) => {
                    let below = claimed.all[index].part.clone();
                    let a = below.a.clone();
                    claimed.all[index].part = ChannelDraft { a, ..patch.part.over(below) };
                }
                None if patch.source == Source::Native => {
                    self.outcome
                        .missing(&patch, "`b` is missing: no public registry knows the channel's other end");
                }
                None => self
                    .outcome
                    .problems
                    .push(patch.place.warning("this channel's other end is in no list; it is left out")),
            }
        }
        self.add_channels(claimed.all);
    }

    fn claim(&mut self, claimed: &mut Claimed, claim: Located<ChannelDraft>) {
        let Some(b) = &claim.part.b else { return };
        for end in [&claim.part.a, b] {
            if self.known_chain(&end.chain).is_err() {
                // Public registries list many unconfigured chains.
                if claim.source == Source::Native {
                    self.outcome.missing(&claim, format!("chain `{}` is in no list", end.chain));
                }
                return;
            }
        }
        match (claimed.at.get(&claim.part.a).copied(), claimed.at.get(b).copied()) {
            (None, None) => claimed.add(claim),
            (Some(at_a), Some(at_b)) if at_a == at_b && claimed.all[at_a].source != claim.source => {
                let above = claimed.all[at_a].part.clone();
                claimed.all[at_a].part = above.over(claim.part);
            }
            (at_a, at_b) => {
                let other = at_a.or(at_b).map(|index| claimed.all[index].clone());
                let Some(other) = other else { return };
                self.contradict(&claim, &other);
            }
        }
    }

    fn contradict(&mut self, claim: &Located<ChannelDraft>, other: &Located<ChannelDraft>) {
        if claim.source == Source::Native {
            self.outcome.refuse(claim, format!("the channel is there twice: also in {}", other.place));
        } else if other.source != Source::Native
            && (&claim.part.a, &claim.part.b) != (&other.part.a, &other.part.b)
        {
            let what = format!(
                "{} is not where this channel ends by {}: that is believed; name both ends in a [[channel]] to decide",
                claim.part, other.place
            );
            self.outcome.problems.push(claim.place.warning(what));
        }
    }

    fn add_channels(&mut self, drafts: Vec<Located<ChannelDraft>>) {
        let channel = |assembly: &Self, draft: &ChannelDraft| {
            let end = |end: &EndDraft| {
                let chain = assembly.known_chain(&end.chain)?;
                Ok::<_, String>(End { chain, port: end.port.clone(), channel: end.channel.clone() })
            };
            let b = draft.b.as_ref().ok_or("`b` is missing")?;
            let (paused, seconds) = (draft.paused.clone(), draft.seconds);
            Ok(Channel { a: end(&draft.a)?, b: end(b)?, paused, seconds })
        };
        let key = |end: &End| (end.chain, end.port.clone(), end.channel.clone());
        self.add_all(drafts, channel, |channel| (key(&channel.a), key(&channel.b)), Builder::channel);
    }
}

/// The channels so far, and their ends.
#[derive(Default)]
struct Claimed {
    all: Vec<Located<ChannelDraft>>,
    at: BTreeMap<EndDraft, usize>,
}

impl Claimed {
    fn add(&mut self, claim: Located<ChannelDraft>) {
        for end in std::iter::once(&claim.part.a).chain(&claim.part.b) {
            self.at.insert(end.clone(), self.all.len());
        }
        self.all.push(claim);
    }
}

/// Orders the ends.
fn normalize(channel: &mut ChannelDraft) {
    if let Some(b) = channel.b.take_if(|b| *b < channel.a) {
        channel.b = Some(std::mem::replace(&mut channel.a, b));
    }
}

impl std::fmt::Display for ChannelDraft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = |end: &EndDraft| format!("{}/{}/{}", end.chain, end.port, end.channel);
        f.write_str(&end(&self.a))?;
        match &self.b {
            Some(b) => write!(f, " = {}", end(b)),
            None => Ok(()),
        }
    }
}
