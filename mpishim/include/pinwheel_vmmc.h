/*
 * pinwheel_vmmc.h - virtual memory-mapped communication.
 *
 * A process exports memory, others that it permits import it, and from then on they send into it.
 * The receiver does nothing for that.
 *
 * The model is that of Dubnicki et al., "Software Support for Virtual Memory-Mapped
 * Communication"; its section numbers stand beside the functions. Link with -lpinwheel-vmmc.
 *
 * The library contains a Go runtime, which starts when the library is loaded. A child of a fork
 * must call nothing of it before exec. It has neither the memory that the parent imports nor its
 * mapped areas: to touch these there is a SIGSEGV. Signal handlers that the program installs need
 * SA_ONSTACK.
 *
 * Threads. Any thread may call any function at any time, also with the same object, unless the
 * function frees that object: then no other call with it may be under way or follow.
 *
 * Ownership. A function that makes an object says which one frees it. Close the node last: it
 * ends all that is left, and the objects of a closed node can only be freed. Strings and options
 * are copied. Memory of pinwheel_vmmc_alloc belongs to its node.
 *
 * Errors. Functions return 0, or a negative errno if nothing else is said, and set no errno:
 *
 *   -EINVAL        arguments that make no sense, also NULL for an object
 *   -ERANGE        outside the export or the mapping; nothing was sent
 *   -EACCES        this node, or the peer, can't prove who it is
 *   -EPERM         the exporter does not permit it
 *   -EUSERS        the exporter has too many importers
 *   -EEXIST        the name of the export is in use
 *   -EBUSY         the memory is exported or mapped
 *   -ENOENT        the export is gone, or on its way
 *   -ENOSPC        this node has as many exports as it may
 *   -EOVERFLOW     more bytes than memory can have
 *   -ECONNREFUSED  there is no broker on this machine, or it has refused
 *   -ESTALE        the exporter has ended the export
 *   -ENOTCONN      this side has ended the import or the mapping
 *   -ECONNRESET    the peer has gone: its connection has ended, or it was silent for the heartbeat
 *   -EAGAIN        too many messages or imports wait
 *   -ETIMEDOUT     the timeout has passed
 *   -ESHUTDOWN     the node was closed
 *   others         what the kernel said, or -EIO
 *
 * pinwheel_vmmc_error has the text of the last one in this thread. Timeouts are in milliseconds;
 * a negative one is none.
 */
#ifndef PINWHEEL_VMMC_H
#define PINWHEEL_VMMC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Objects. Their content is the library's. */
typedef struct pinwheel_vmmc_node pinwheel_vmmc_node;
typedef struct pinwheel_vmmc_export pinwheel_vmmc_export;
typedef struct pinwheel_vmmc_import pinwheel_vmmc_import;
typedef struct pinwheel_vmmc_mapping pinwheel_vmmc_mapping;
typedef struct pinwheel_vmmc_op pinwheel_vmmc_op;

/*
 * Copies the text of the last error of a call in this thread to text, which has room for size
 * bytes with the final zero. It is cut if it is longer.
 *
 * Returns the length of the text, without the final zero; 0 if no call has failed.
 */
size_t pinwheel_vmmc_error(char *text, size_t size);

/* Options of a node. Set size, and zero the rest: zero stands for a default. */
typedef struct pinwheel_vmmc_options {
	size_t size;               /* sizeof(pinwheel_vmmc_options) */
	const char *name;          /* what others know this node by; NULL: host name and process */
	const char *const *listen; /* where importers find it: "unix:PATH" or "tcp:HOST:PORT", then NULL */
	const char *token;         /* over TCP: a secret of 32 bytes or more that all nodes know; NULL: this
				    * machine and user only */
	int64_t heartbeat_ms;      /* silence after which a peer is gone; 0: 5000 */
	/*
	 * Hears of what fails and concerns no caller, in a thread of the library. It must not call
	 * pinwheel_vmmc_close. message is valid until it returns. NULL: standard error.
	 */
	void (*warn)(void *arg, const char *message);
	void *warn_arg;
} pinwheel_vmmc_options;

/* Opens a node. options may be NULL. *node is freed by pinwheel_vmmc_close. */
int pinwheel_vmmc_open(const pinwheel_vmmc_options *options, pinwheel_vmmc_node **node);

/*
 * Ends all exports, imports and connections, waits for handlers, frees the memory of
 * pinwheel_vmmc_alloc, and frees the node. A handler must not call it.
 */
int pinwheel_vmmc_close(pinwheel_vmmc_node *node);

/*
 * Copies the address number k at which importers find the node, with the port that the kernel
 * chose for port 0.
 *
 * Returns 0; -ENOENT if there are fewer addresses; -ERANGE if size is too small.
 */
int pinwheel_vmmc_address(pinwheel_vmmc_node *node, unsigned k, char *address, size_t size);

/*
 * Allocates zeroed memory that importers on this machine can share, and that can be mapped. It
 * starts at a page. It lasts until pinwheel_vmmc_free or pinwheel_vmmc_close. Give each
 * export memory of its own: who shares it reaches its whole pages.
 */
int pinwheel_vmmc_alloc(pinwheel_vmmc_node *node, size_t bytes, void **memory);

/* Frees memory of pinwheel_vmmc_alloc. Returns 0; -EBUSY while it is exported or mapped; -EINVAL. */
int pinwheel_vmmc_free(pinwheel_vmmc_node *node, void *memory);

/* Who may import an export, and what becomes of its notifications. */
typedef struct pinwheel_vmmc_permissions {
	size_t size;              /* sizeof(pinwheel_vmmc_permissions) */
	const char *const *peers; /* names of nodes, then NULL; or NULL */
	const uint32_t *uids;     /* users of this machine, 65536 at most */
	size_t n_uids;
	unsigned max_importers; /* at a time; 0: 256 */
	unsigned queue;         /* notifications of each importer that may wait; 0: 64 */
	int coalesce;           /* those of an importer with the same tag are one */
} pinwheel_vmmc_permissions;

/*
 * Export (4.1). Makes memory a receive buffer with the name id. Whoever is not permitted can't
 * import it; permissions that name nobody, or NULL, permit nobody. Messages arrive at any
 * time from now on, until pinwheel_vmmc_unexport has returned 0: the memory must stay mapped and
 * writable for as long. Look for a word in it with an atomic load.
 *
 * *export_ is freed by pinwheel_vmmc_export_free.
 */
int pinwheel_vmmc_export_memory(pinwheel_vmmc_node *node, uint32_t id, void *memory, size_t bytes,
				const pinwheel_vmmc_permissions *permissions, pinwheel_vmmc_export **export_);

/*
 * Unexport (4.5). When it returns 0, no import is left, what was sent has arrived, and nothing arrives
 * any more. -ETIMEDOUT: it goes on by itself, and can be called again. With a timeout of 0 it
 * does not wait. One call, or all that wait at that time, hear of the end; those after it get -ENOENT.
 */
int pinwheel_vmmc_unexport(pinwheel_vmmc_export *export_, int timeout_ms);

/* Frees the object. The export itself goes on, until pinwheel_vmmc_unexport or the end of the node. */
int pinwheel_vmmc_export_free(pinwheel_vmmc_export *export_);

/* A message that has arrived, of whose arrival its sender wanted to tell (4.4). */
typedef struct pinwheel_vmmc_notification {
	uint64_t offset; /* of the message, in the export */
	uint64_t bytes;  /* of the message */
	uint32_t count;  /* how many this one stands for */
	uint16_t tag;
	char peer[256]; /* name of the importer, cut if it is longer */
} pinwheel_vmmc_notification;

/*
 * Waits for the next notification. After pinwheel_vmmc_block, it misses none. After the end of the
 * export it returns those that are left, then -ESTALE.
 */
int pinwheel_vmmc_wait(pinwheel_vmmc_export *export_, int timeout_ms, pinwheel_vmmc_notification *notification);

/*
 * Makes handler hear of each notification, one after the other, in threads of the library. NULL
 * removes it. Without a handler notifications are ignored, unless they are blocked or somebody waits
 * for them. A handler may call everything but pinwheel_vmmc_close. notification is valid until it
 * returns. arg must stay valid until pinwheel_vmmc_close has returned.
 */
int pinwheel_vmmc_handle(pinwheel_vmmc_export *export_,
			 void (*handler)(void *arg, const pinwheel_vmmc_notification *notification), void *arg);

/* Keeps notifications in the queue (yes), or lets the handler have them again. */
int pinwheel_vmmc_block(pinwheel_vmmc_export *export_, int yes);

/* Drops notifications (yes), those in the queue first, or accepts them again. */
int pinwheel_vmmc_discard(pinwheel_vmmc_export *export_, int yes);

/*
 * Returns an eventfd(2) for poll(2), which the caller closes. It is readable with each notification
 * that waits. Read it, then call pinwheel_vmmc_wait with a timeout of 0 until that fails.
 */
int pinwheel_vmmc_fd(pinwheel_vmmc_export *export_);

/*
 * Import (4.1). Waits until the exporter is there and exports id. *import is freed by
 * pinwheel_vmmc_unimport.
 */
int pinwheel_vmmc_import_memory(pinwheel_vmmc_node *node, uint32_t id, const char *exporter, int timeout_ms,
				pinwheel_vmmc_import **import);

/* Unimport (4.5). Messages that are not sent out are lost. It frees the import. */
int pinwheel_vmmc_unimport(pinwheel_vmmc_import *import);

/* What is known of an import. Later versions may add fields; size tells which there are. */
typedef struct pinwheel_vmmc_import_info {
	size_t size;    /* sizeof(pinwheel_vmmc_import_info), set by the caller */
	uint64_t bytes; /* of the export */
	int shared;     /* it is memory that both processes share */
	int ended;      /* 0, or the negative errno that a message would get */
} pinwheel_vmmc_import_info;

int pinwheel_vmmc_import_query(pinwheel_vmmc_import *import, pinwheel_vmmc_import_info *info);

/*
 * Destination proxy space (4). *address stands for the first byte of the export in
 * pinwheel_vmmc_send_to. The addresses have no memory: to touch them is a fault.
 */
int pinwheel_vmmc_proxy(pinwheel_vmmc_import *import, void **address);

/* Flags of messages. */
#define PINWHEEL_VMMC_NOTIFY 1u /* tell the exporter after the message has arrived */

/*
 * SendMsg, deliberate update (4.2). Sends bytes from src to offset of the export. It returns 0 when
 * src may be changed; with shared memory the message has arrived then. Messages through one import
 * arrive in the order of their calls, each notification after its message. After an error other
 * than -ERANGE and -EINVAL, some of it may have been sent, and a device may read src for a moment
 * longer: what it reads belongs to the message. src must stay mapped meanwhile.
 */
int pinwheel_vmmc_send(pinwheel_vmmc_import *import, const void *src, size_t bytes, uint64_t offset, unsigned flags,
		       uint16_t tag, int timeout_ms);

/* The same to an address of destination proxy space. */
int pinwheel_vmmc_send_to(pinwheel_vmmc_node *node, const void *src, size_t bytes, const void *address,
			  unsigned flags, uint16_t tag, int timeout_ms);

/*
 * Begins a message. src must not change before the message is sent. *op is freed by pinwheel_vmmc_op_free.
 */
int pinwheel_vmmc_send_start(pinwheel_vmmc_import *import, const void *src, size_t bytes, uint64_t offset,
			     unsigned flags, uint16_t tag, pinwheel_vmmc_op **op);

/* Waits until src may be changed; 0 of a timeout only asks. */
int pinwheel_vmmc_op_sent(pinwheel_vmmc_op *op, int timeout_ms);

/* Waits until the message is in the memory of the exporter, which says nothing of who looked at it. */
int pinwheel_vmmc_op_arrived(pinwheel_vmmc_op *op, int timeout_ms);

/* Frees the object; the message goes on, and src must not change before it is sent. */
int pinwheel_vmmc_op_free(pinwheel_vmmc_op *op);

/*
 * Map, automatic update (4.3). From now on, stores into local are messages to offset of the export.
 * local is whole pages of pinwheel_vmmc_alloc that are neither exported nor mapped. If the export
 * is shared, a store is in the memory of the exporter at once, in the order of stores. Otherwise what has
 * changed is found and sent about every interval_us (0: 1000; negative: only by flush and
 * publish). With copy, all that local holds is sent first.
 *
 * *mapping is freed by pinwheel_vmmc_unmap. The end of the import ends it, too.
 */
int pinwheel_vmmc_map(pinwheel_vmmc_import *import, uint64_t offset, void *local, size_t bytes, int64_t interval_us,
		      int copy, pinwheel_vmmc_mapping **mapping);

/* Returns 0 when all stores before it have arrived. */
int pinwheel_vmmc_flush(pinwheel_vmmc_mapping *mapping, int timeout_ms);

/* Stores a word at offset of local, a multiple of 8, and sends it at once, without order among plain stores. */
int pinwheel_vmmc_store(pinwheel_vmmc_mapping *mapping, uint64_t offset, uint64_t word);

/* Stores a word after all stores before it: whoever sees the word sees them, too. */
int pinwheel_vmmc_publish(pinwheel_vmmc_mapping *mapping, uint64_t offset, uint64_t word, int timeout_ms);

/*
 * Unmap (4.3). Sends what was stored, gives local memory of its own again, which shows the same, and
 * frees the mapping. After an error other than -EINVAL the mapping is as it was.
 */
int pinwheel_vmmc_unmap(pinwheel_vmmc_mapping *mapping);

#ifdef __cplusplus
}
#endif

#endif
