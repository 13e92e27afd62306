//! txjson
