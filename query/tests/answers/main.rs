//! Replies of the API over hand-made databases.
//!
//! One program, since each would take a minute to compile.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

mod attacks;
mod changing_sets;
mod hand_made;
mod many_sets;
mod nft;
mod paging;
mod requests;
mod rewound;
mod rich_list;
mod searching;
mod streams;
