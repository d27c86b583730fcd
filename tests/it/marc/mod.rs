//! MARC: the three forms, the mapping from Sierra, conversion at the desk.

mod properties;
mod strategies;
mod strict_xml;
