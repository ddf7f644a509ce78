// Package wire has the frames that two nodes of virtual memory-mapped communication exchange over a
// stream: how they are coded, and how long each may be.
//
// A frame is a header of 4 bytes (its type, then the length of its body, big-endian, in 3 bytes) and a
// body whose fields its type determines. Reader takes no more memory for a frame than its type allows,
// whatever its header says. The bytes of a message follow its Data frame; whoever reads that takes them
// from the stream.
package wire
