//! What may leave the program about people.

mod canaries;
mod pseudonyms;
