//! The clients over real sockets, against servers that play scripts and against recorded answers.

mod comet;
mod cosmos;
mod evm;
mod grpc;
mod pool;
mod recorded;
mod scripted;
