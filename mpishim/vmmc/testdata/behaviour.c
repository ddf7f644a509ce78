/* Every function of pinwheel_vmmc.h, in one process with two nodes: behaviour ADDRESS. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <pinwheel_vmmc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { bytes = 16384, timeout = 60000 };

static int failures;

#define IS(want, call) is(want, call, #call, __LINE__)

static void is(long want, long got, const char *what, int line)
{
	char text[256] = "";

	if (want == got)
		return;
	pinwheel_vmmc_error(text, sizeof text);
	fprintf(stderr, "line %d: %s: %ld, not %ld; last error: %s\n", line, what, got, want, text);
	failures++;
}

static void must(int status, const char *what, int line)
{
	is(0, status, what, line);
	if (status)
		exit(1);
}

#define MUST(call) must(call, #call, __LINE__)

static void warned(void *arg, const char *message)
{
	(void)arg;
	fprintf(stderr, "warned: %s\n", message);
}

static int heard;

static void handler(void *arg, const pinwheel_vmmc_notification *n)
{
	if (n->tag == 3 && !strcmp(n->peer, "sender") && *(int *)arg == 42)
		__atomic_add_fetch(&heard, 1, __ATOMIC_SEQ_CST);
}

static void *sends(void *arg)
{
	char word[8] = {0};
	int k;

	for (k = 0; k < 1000; k++)
		IS(0, pinwheel_vmmc_send(arg, word, sizeof word, 8192, 0, 0, timeout));
	IS(-ERANGE, pinwheel_vmmc_send(arg, word, sizeof word, bytes, 0, 0, timeout));
	return NULL;
}

int main(int argc, char **argv)
{
	const char *listen[] = {argc > 1 ? argv[1] : NULL, NULL}, *peers[] = {"other", "sender", NULL};
	int answer = 42, k, fd;
	char text[64], after[64], one[4];
	void *memory, *local, *proxy, *closing;
	uint64_t *words;
	const size_t huge[] = {SIZE_MAX, (size_t)PTRDIFF_MAX + 1};
	const uint32_t nobody = 65534;
	pthread_t thread[4];
	struct pollfd readable;
	pinwheel_vmmc_node *receiver, *sender;
	pinwheel_vmmc_export *e, *refused;
	pinwheel_vmmc_import *i, *never;
	pinwheel_vmmc_mapping *m;
	pinwheel_vmmc_op *op;
	pinwheel_vmmc_notification n;
	pinwheel_vmmc_import_info info = {.size = sizeof info};
	pinwheel_vmmc_options o = {.size = sizeof o, .name = "receiver", .listen = listen, .warn = warned};
	pinwheel_vmmc_permissions p = {.size = sizeof p, .peers = peers};

	/* Arguments that make no sense, and the text of errors. */
	IS(0, (long)pinwheel_vmmc_error(text, sizeof text));
	IS(-EINVAL, pinwheel_vmmc_open(&o, NULL));
	IS(-EINVAL, pinwheel_vmmc_close(NULL));
	IS(1, pinwheel_vmmc_error(text, sizeof text) > 10);
	IS(0, strncmp(text, "vmmc: ", 6));
	IS((long)strlen(text), (long)pinwheel_vmmc_error(one, sizeof one));
	IS(3, (long)strlen(one));
	o.size = 4;
	IS(-EINVAL, pinwheel_vmmc_open(&o, &receiver));
	o.size = sizeof o;
	o.token = "short";
	IS(-EACCES, pinwheel_vmmc_open(&o, &receiver));
	o.token = NULL;
	o.heartbeat_ms = INT64_MAX;
	IS(-EINVAL, pinwheel_vmmc_open(&o, &receiver));
	o.heartbeat_ms = -1;
	IS(-EINVAL, pinwheel_vmmc_open(&o, &receiver));
	o.heartbeat_ms = 0;
	MUST(pinwheel_vmmc_open(&o, &receiver));
	o.name = "sender";
	o.listen = NULL;
	MUST(pinwheel_vmmc_open(&o, &sender));
	MUST(pinwheel_vmmc_address(receiver, 0, text, sizeof text));
	IS(-ENOENT, pinwheel_vmmc_address(receiver, 1, text, sizeof text));
	IS(-ERANGE, pinwheel_vmmc_address(receiver, 0, one, sizeof one));

	/* Export and import. */
	MUST(pinwheel_vmmc_alloc(receiver, bytes, &memory));
	MUST(pinwheel_vmmc_export_memory(receiver, 1, memory, bytes, &p, &e));
	IS(-EBUSY, pinwheel_vmmc_free(receiver, memory));
	IS(-EBUSY, pinwheel_vmmc_export_memory(receiver, 2, memory, bytes, &p, &refused));
	MUST(pinwheel_vmmc_alloc(receiver, bytes, &local));
	IS(-EEXIST, pinwheel_vmmc_export_memory(receiver, 1, local, bytes, &p, &refused));
	MUST(pinwheel_vmmc_export_memory(receiver, 2, local, bytes, NULL, &refused));
	IS(-EPERM, pinwheel_vmmc_import_memory(sender, 2, text, timeout, &never));
	MUST(pinwheel_vmmc_unexport(refused, timeout));
	MUST(pinwheel_vmmc_export_free(refused));
	MUST(pinwheel_vmmc_free(receiver, local));
	IS(-ETIMEDOUT, pinwheel_vmmc_import_memory(sender, 3, text, 20, &never));
	IS(-EINVAL, pinwheel_vmmc_import_memory(sender, 3, "nowhere", timeout, &never));
	MUST(pinwheel_vmmc_import_memory(sender, 1, text, timeout, &i));
	MUST(pinwheel_vmmc_import_query(i, &info));
	IS(bytes, (long)info.bytes);
	IS(!strncmp(text, "unix:", 5), info.shared);
	IS(0, info.ended);

	/* Messages and notifications. */
	MUST(pinwheel_vmmc_block(e, 1));
	MUST(pinwheel_vmmc_send(i, "hello", 5, 100, PINWHEEL_VMMC_NOTIFY, 7, timeout));
	MUST(pinwheel_vmmc_wait(e, timeout, &n));
	IS(1, n.offset == 100 && n.bytes == 5 && n.tag == 7 && n.count == 1 && !strcmp(n.peer, "sender"));
	IS(0, memcmp((char *)memory + 100, "hello", 5));
	IS(-ETIMEDOUT, pinwheel_vmmc_wait(e, 10, &n));
	IS(-EINVAL, pinwheel_vmmc_send(i, "hello", 5, 0, 8, 0, timeout));
	for (k = 0; k < (int)(sizeof huge / sizeof huge[0]); k++) {
		IS(-ERANGE, pinwheel_vmmc_send(i, memory, huge[k], 0, 0, 0, timeout));
		IS(-ERANGE, pinwheel_vmmc_send(i, memory, huge[k], 100, PINWHEEL_VMMC_NOTIFY, 0, -1));
		IS(-ERANGE, pinwheel_vmmc_send_start(i, memory, huge[k], 0, 0, 0, &op));
		IS(-EOVERFLOW, pinwheel_vmmc_map(i, 0, memory, huge[k], 0, 0, &m));
		IS(-EOVERFLOW, pinwheel_vmmc_export_memory(sender, 77, memory, huge[k], &p, &refused));
		IS(-EOVERFLOW, pinwheel_vmmc_alloc(sender, huge[k], &local));
		p.uids = &nobody;
		p.n_uids = huge[k];
		IS(-EINVAL, pinwheel_vmmc_export_memory(sender, 77, memory, bytes, &p, &refused));
		p.uids = NULL;
		p.n_uids = 0;
		MUST(pinwheel_vmmc_address(receiver, 0, text, huge[k])); /* text is large enough */
	}
	IS(-EINVAL, pinwheel_vmmc_map(i, 0, memory, bytes, INT64_MAX, 0, &m));
	MUST(pinwheel_vmmc_proxy(i, &proxy));
	MUST(pinwheel_vmmc_send_to(sender, "proxy", 5, (char *)proxy + 200, PINWHEEL_VMMC_NOTIFY, 1, timeout));
	MUST(pinwheel_vmmc_wait(e, timeout, &n));
	IS(0, memcmp((char *)memory + 200, "proxy", 5));
	IS(-ERANGE, pinwheel_vmmc_send_to(sender, "proxy", 5, (char *)proxy - 1, 0, 0, timeout));
	IS(-ERANGE, pinwheel_vmmc_send_to(sender, memory, SIZE_MAX, proxy, 0, 0, timeout));
	fd = pinwheel_vmmc_fd(e);
	IS(1, fd >= 0);
	MUST(pinwheel_vmmc_send_start(i, "later", 5, 300, PINWHEEL_VMMC_NOTIFY, 2, &op));
	MUST(pinwheel_vmmc_op_sent(op, timeout));
	MUST(pinwheel_vmmc_op_arrived(op, timeout));
	MUST(pinwheel_vmmc_op_arrived(op, 0));
	MUST(pinwheel_vmmc_op_free(op));
	readable.fd = fd;
	readable.events = POLLIN;
	IS(1, poll(&readable, 1, timeout));
	MUST(pinwheel_vmmc_wait(e, 0, &n));
	IS(0, memcmp((char *)memory + 300, "later", 5));
	close(fd);
	MUST(pinwheel_vmmc_handle(e, handler, &answer));
	MUST(pinwheel_vmmc_block(e, 0));
	for (k = 0; k < 10; k++)
		MUST(pinwheel_vmmc_send(i, NULL, 0, 0, PINWHEEL_VMMC_NOTIFY, 3, timeout));
	for (k = 0; k < timeout && __atomic_load_n(&heard, __ATOMIC_SEQ_CST) < 10; k++)
		usleep(1000);
	IS(10, heard);
	MUST(pinwheel_vmmc_handle(e, NULL, NULL));
	MUST(pinwheel_vmmc_discard(e, 1));
	for (k = 0; k < 4; k++)
		MUST(pthread_create(&thread[k], NULL, sends, i));
	for (k = 0; k < 4; k++)
		MUST(pthread_join(thread[k], NULL));

	/* Automatic update. */
	MUST(pinwheel_vmmc_alloc(sender, 4096, &local));
	IS(-ERANGE, pinwheel_vmmc_map(i, bytes, local, 4096, 0, 0, &m));
	MUST(pinwheel_vmmc_map(i, 4096, local, 4096, 0, 0, &m));
	words = local;
	__atomic_store_n(&words[1], 11, __ATOMIC_SEQ_CST);
	MUST(pinwheel_vmmc_flush(m, timeout));
	words = (uint64_t *)((char *)memory + 4096);
	IS(11, (long)__atomic_load_n(&words[1], __ATOMIC_SEQ_CST));
	MUST(pinwheel_vmmc_store(m, 16, 22));
	MUST(pinwheel_vmmc_publish(m, 24, 33, timeout));
	MUST(pinwheel_vmmc_flush(m, timeout));
	IS(22, (long)__atomic_load_n(&words[2], __ATOMIC_SEQ_CST));
	IS(33, (long)__atomic_load_n(&words[3], __ATOMIC_SEQ_CST));
	IS(-ERANGE, pinwheel_vmmc_store(m, 4096, 1));
	MUST(pinwheel_vmmc_unmap(m));
	MUST(pinwheel_vmmc_free(sender, local));

	/* The end. */
	k = pinwheel_vmmc_unexport(e, 0);
	if (k == -ETIMEDOUT) { /* it goes on by itself */
		IS(-ESTALE, pinwheel_vmmc_wait(e, timeout, &n));
		k = pinwheel_vmmc_unexport(e, timeout);
	}
	IS(0, k);
	IS(-ENOENT, pinwheel_vmmc_unexport(e, timeout));
	IS(-ESTALE, pinwheel_vmmc_send(i, "late", 4, 0, 0, 0, timeout));
	IS(-ESTALE, pinwheel_vmmc_wait(e, timeout, &n));
	IS(-ERANGE, pinwheel_vmmc_send(i, "late", 4, bytes, 0, 0, timeout));
	pinwheel_vmmc_error(text, sizeof text);
	MUST(pinwheel_vmmc_import_query(i, &info));
	IS(-ESTALE, info.ended);
	pinwheel_vmmc_error(after, sizeof after);
	IS(0, strcmp(text, after)); /* no call has failed since */
	MUST(pinwheel_vmmc_unimport(i));
	MUST(pinwheel_vmmc_export_free(e));
	MUST(pinwheel_vmmc_free(receiver, memory));
	MUST(pinwheel_vmmc_alloc(receiver, 4096, &closing));
	pinwheel_vmmc_address(receiver, 0, text, sizeof text);
	MUST(pinwheel_vmmc_export_memory(receiver, 9, closing, 4096, &p, &e));
	MUST(pinwheel_vmmc_import_memory(sender, 9, text, timeout, &i));
	MUST(pinwheel_vmmc_close(receiver));
	MUST(pinwheel_vmmc_export_free(e));
	for (k = 0; k < timeout && pinwheel_vmmc_send(i, "gone", 4, 0, 0, 0, timeout) == 0; k++)
		usleep(1000);
	IS(-ECONNRESET, pinwheel_vmmc_send(i, "gone", 4, 0, 0, 0, timeout));
	MUST(pinwheel_vmmc_unimport(i));
	MUST(pinwheel_vmmc_close(sender));
	if (!failures)
		printf("all as the header says\n");
	return failures != 0;
}
