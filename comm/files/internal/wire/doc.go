// Package wire has the requests and answers of package files, as bytes of the calls of package comm/vmmc/rpc. A message is a
// struct that names its fields once, for both directions. Lengths are of 64 bit. Strings, lists and contents have
// bounds that are checked before anything is allocated for them, and a message has no bytes that it does not need.
package wire
