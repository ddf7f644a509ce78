// Package broker brings the processes of a node together that communicate by package vmmc (§5.3 of the paper
// that vmmc names). An exporter registers under a name. An importer asks for that name, also before it is
// there, and gets a connection to the exporter; from then on the two need the broker no more.
//
// The broker is the daemon "pinwheel node", or any process that calls Serve.
//
// # Protocol
//
// Clients connect to a Unix socket that keeps message boundaries (SOCK_SEQPACKET) and write one request. Messages
// are JSON objects, of 16 KiB at most.
//
//	register  stays connected. The broker sends connect, with a descriptor, for each importer; and describe,
//	          which the exporter answers with export and import messages, and done
//	dial      the broker answers connected, with a descriptor, once the exporter is there
//	list      the broker answers process, export and import messages, and done
//
// Each may be answered by refused instead. The descriptors are the two ends of a stream socket.
//
// Brokers of two nodes talk over TLS. One sends dial for a client, the other answers with a ticket and a key, once
// the exporter is there. The importer connects to the port of that broker, which looks at the ticket and hands the
// connection on to the exporter. Both ends then prove by TLS that they know the key. So programs never see the
// keys of nodes, and no byte of theirs passes through a broker.
//
// # Protection
//
// SO_PEERCRED tells who a client is. Names belong to users: nobody can take another user's. An exporter says which
// other users may reach it, and learns who does. A client sees its own user's processes in a list; root sees all.
// Clients believe a broker only if their own user or root made its socket. Brokers believe each other which user a
// process belongs to: an exporter says from which nodes it takes importers, and a name tells node and user.
//
// Whoever may connect to a broker that has an identity for other nodes may have it connect to any HOST:PORT, and hears
// why that fails. The connection is that of the broker's machine and user.
//
// One user, of this node or of another, can't use up what the broker has for all: clients, dials of other nodes that
// wait, descriptions that a list holds, and descriptors that nobody has read are counted for each. A client has its
// place until it has read what it was sent.
package broker
