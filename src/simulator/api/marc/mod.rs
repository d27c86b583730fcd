//! MARC from the API: one record in three renderings, and exports in three phases (`sierra-api.md` §4).

mod export;
mod iso2709;
mod single;

pub(crate) use export::Exports;
pub(crate) use single::single;
