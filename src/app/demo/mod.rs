//! stub
mod copy;
mod verify;
