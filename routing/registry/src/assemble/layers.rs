//! Merging of drafts of one part from several files.

use crate::draft::{Located, Source};
use crate::problem::Place;

/// Merges the drafts of each key into one, sorted by key: an earlier [`Source`] has precedence, later ones fill in its
/// missing members. Of two drafts of one source the second is passed to `twice` and dropped, unless both are implied.
pub(super) fn layered<T, K: Ord>(
    mut parts: Vec<Located<T>>,
    key: impl Fn(&T) -> K,
    over: impl Fn(T, T) -> T,
    mut twice: impl FnMut(&Located<T>, &Place),
) -> Vec<Located<T>> {
    parts.sort_by(|a, b| (key(&a.part), a.source, &a.place).cmp(&(key(&b.part), b.source, &b.place)));
    let mut layered: Vec<Located<T>> = Vec::new();
    let mut last: Option<(Source, Place)> = None;
    for part in parts {
        let top = layered.last().is_some_and(|top| key(&top.part) == key(&part.part));
        let Some(above) = layered.pop_if(|_| top) else {
            last = Some((part.source, part.place.clone()));
            layered.push(part);
            continue;
        };
        if let Some((_, place)) = last.as_ref().filter(|(source, _)| *source == part.source)
            && part.source != Source::Implied
        {
            twice(&part, place);
            layered.push(above);
            continue;
        }
        last = Some((part.source, part.place.clone()));
        // The part of a public registry keeps that source, so that its errors do not fail the load.
        let source = if part.source == Source::Implied { above.source } else { part.source };
        layered.push(Located { source, place: above.place, part: over(above.part, part.part) });
    }
    layered
}
