//! What is particular to files: rotation, the manifest, and what can stand in the way.
