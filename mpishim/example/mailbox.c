/*
 * mailbox - one process exports a mailbox, others put messages into it.
 *
 *   mailbox receive ADDRESS N    waits for N messages, and prints them
 *   mailbox send ADDRESS TEXT    sends one
 *
 * ADDRESS is unix:PATH, or node:NAME, a name at the broker of the machine (pinwheel node).
 * Both must be processes of one user on one machine. Build it with
 *
 *   cc -o mailbox mailbox.c $(pkg-config --cflags --libs pinwheel-vmmc)
 */
#include <pinwheel_vmmc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { mailbox = 7, slots = 16, slot_bytes = 256, timeout_ms = 30000 };

static int check(int status, const char *what)
{
	char text[256];

	if (status >= 0)
		return status;
	pinwheel_vmmc_error(text, sizeof text);
	fprintf(stderr, "mailbox: %s: %s\n", what, text);
	exit(1);
}

static void receive(const char *address, int count)
{
	const char *listen[] = {address, NULL};
	uint32_t me = (uint32_t)getuid();
	pinwheel_vmmc_options options = {.size = sizeof options, .listen = listen};
	pinwheel_vmmc_permissions permissions = {.size = sizeof permissions, .uids = &me, .n_uids = 1};
	pinwheel_vmmc_node *node;
	pinwheel_vmmc_export *box;
	pinwheel_vmmc_notification n;
	void *memory;
	int k;

	check(pinwheel_vmmc_open(&options, &node), "open");
	check(pinwheel_vmmc_alloc(node, slots * slot_bytes, &memory), "alloc");
	check(pinwheel_vmmc_export_memory(node, mailbox, memory, slots * slot_bytes, &permissions, &box), "export");
	check(pinwheel_vmmc_block(box, 1), "block"); /* keep what comes for pinwheel_vmmc_wait */
	for (k = 0; k < count; k++) {
		check(pinwheel_vmmc_wait(box, timeout_ms, &n), "wait");
		printf("%u: %.*s\n", n.tag, (int)n.bytes, (const char *)memory + n.offset);
	}
	check(pinwheel_vmmc_unexport(box, timeout_ms), "unexport"); /* nothing arrives any more */
	check(pinwheel_vmmc_export_free(box), "free");
	check(pinwheel_vmmc_close(node), "close");
}

static void send_text(const char *address, const char *text)
{
	pinwheel_vmmc_node *node;
	pinwheel_vmmc_import *box;
	unsigned slot = (unsigned)getpid() % slots; /* two senders might have the same one */
	size_t bytes = strlen(text);

	check(pinwheel_vmmc_open(NULL, &node), "open");
	check(pinwheel_vmmc_import_memory(node, mailbox, address, timeout_ms, &box), "import");
	if (bytes > slot_bytes)
		bytes = slot_bytes;
	check(pinwheel_vmmc_send(box, text, bytes, slot * slot_bytes, PINWHEEL_VMMC_NOTIFY, (uint16_t)slot, timeout_ms), "send");
	check(pinwheel_vmmc_unimport(box), "unimport");
	check(pinwheel_vmmc_close(node), "close");
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "receive"))
		receive(argv[2], atoi(argv[3]));
	else if (argc == 4 && !strcmp(argv[1], "send"))
		send_text(argv[2], argv[3]);
	else {
		fprintf(stderr, "usage: mailbox receive ADDRESS N | mailbox send ADDRESS TEXT\n"
			"ADDRESS is unix:PATH, or node:NAME, a name at the broker (pinwheel node)\n");
		return 2;
	}
	return 0;
}
