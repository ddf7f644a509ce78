// Package protocol decides what the two ends of an import-export mapping do: who may import, who waits
// for an export, when a message may be sent and notified, and when an export is gone for good.
//
// An Exporter has the exports of a node and all connections on which others import them. An Importer
// has one connection to an exporter. A Queue keeps the notifications of an export. All are state
// machines: they have no goroutine, no clock and no connection, and the same calls give the same
// results. Whoever drives them holds a lock across each call, carries the frames, and copies the data.
//
// # Life of an import
//
//	importer            exporter
//	Import(7)  -------> waits until 7 is exported
//	           <------- Grant, or Deny
//	Data, Notify -----> bounds and credits are checked
//	           <------- Credit, once notifications have been consumed
//	           <------- Revoke (Unexport)
//	Release    -------> the mapping is gone. Everything sent for it came before, in order
//
// An importer may send Release at any time, also while it waits. Frames that cross a Release are
// ignored. A frame that no node would send is ErrProtocol, which ends its connection and nothing else.
package protocol

import "errors"

// ErrProtocol is the error of a frame that breaks the rules: out of bounds, without a credit, or for an
// import that does not exist.
var ErrProtocol = errors.New("protocol violation")
