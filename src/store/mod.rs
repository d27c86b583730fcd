//! The stores: sled for the product, memory for the simulation, one conformance suite for both.

pub mod settings;

pub use settings::StoreSettings;
