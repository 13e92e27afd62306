//! Quotes are the chain's own, to the unit: each recorded view that prices a swap, and each executed swap.

mod executed;
mod properties;
mod state;
mod views;
