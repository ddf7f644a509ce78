/* Addresses of three families, the ports behind them, and rdma_getaddrinfo. */
#include "cm.h"
#include <endian.h>
#include <infiniband/ib.h>
#include <netdb.h>

#define FIRST_PORT 32768u /* of those that a program does not choose itself */
#define PORTS 28000u

socklen_t cm_size(const struct sockaddr *a)
{
	switch (a ? a->sa_family : AF_UNSPEC) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	default:
		return 0;
	}
}

uint16_t cm_port(const struct sockaddr *a)
{
	switch (a->sa_family) {
	case AF_INET:
		return ntohs(((const struct sockaddr_in *)a)->sin_port);
	case AF_INET6:
		return ntohs(((const struct sockaddr_in6 *)a)->sin6_port);
	case AF_IB: /* the last two bytes of the service ID */
		return (uint16_t)be64toh(((const struct sockaddr_ib *)a)->sib_sid);
	default:
		return 0;
	}
}

static void set_port(struct sockaddr *a, uint16_t port)
{
	struct sockaddr_ib *ib = (struct sockaddr_ib *)a;

	if (a->sa_family == AF_INET)
		((struct sockaddr_in *)a)->sin_port = htons(port);
	else if (a->sa_family == AF_INET6)
		((struct sockaddr_in6 *)a)->sin6_port = htons(port);
	else
		ib->sib_sid = htobe64((be64toh(ib->sib_sid) & ~0xffffull) | port);
}

void cm_take_host(struct sockaddr *to, const struct sockaddr *from)
{
	uint16_t port = cm_port(to);

	memcpy(to, from, cm_size(from));
	set_port(to, port);
}

int cm_is_any(const struct sockaddr *a)
{
	static const struct in6_addr none;

	switch (a->sa_family) {
	case AF_INET:
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr == INADDR_ANY;
	case AF_INET6:
		return !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &none, sizeof(none));
	default:
		return !memcmp(&((const struct sockaddr_ib *)a)->sib_addr, &none, sizeof(none));
	}
}

/* An address of this machine, which is all that the device reaches: one that a datagram socket can have. */
int cm_is_local(const struct sockaddr *a)
{
	struct sockaddr_storage s = {0};
	union ibv_gid gid;
	int sock, ok;

	if (!cm_size(a) || cm_is_any(a))
		return cm_size(a) != 0;
	if (a->sa_family == AF_IB)
		return cm_device(NULL) && !ibv_query_gid(cm_device(NULL), 1, 0, &gid) &&
		       !memcmp(&((const struct sockaddr_ib *)a)->sib_addr, &gid, sizeof(gid));
	memcpy(&s, a, cm_size(a));
	set_port((struct sockaddr *)&s, 0);
	if ((sock = socket(a->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)) < 0)
		return 0;
	ok = !bind(sock, (struct sockaddr *)&s, cm_size(a));
	close(sock);
	return ok;
}

socklen_t cm_name(struct sockaddr_un *u, uint16_t port)
{
	memset(u, 0, sizeof(*u));
	u->sun_family = AF_UNIX;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   snprintf(u->sun_path + 1, sizeof(u->sun_path) - 1, "softverbs1.%u.port.%u", geteuid(), port));
}

int cm_bind(struct cm_id *id, const struct sockaddr *a)
{
	struct sockaddr_storage *src = &id->id.route.addr.src_storage;
	unsigned asked = a ? cm_port(a) : 0, tries = asked ? 1 : PORTS;
	unsigned at = (unsigned)getpid() * 7919u + (unsigned)id->serial; /* others begin elsewhere */
	struct sockaddr_un u;

	if ((id->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) < 0)
		return errno;
	for (; tries; tries--, at++) {
		uint16_t port = (uint16_t)(asked ? asked : FIRST_PORT + at % PORTS);

		if (!bind(id->sock, (struct sockaddr *)&u, cm_name(&u, port))) {
			if (a)
				memcpy(src, a, cm_size(a));
			else
				src->ss_family = AF_INET; /* until the other side's address says which */
			set_port((struct sockaddr *)src, port);
			return 0;
		}
	}
	close(id->sock);
	id->sock = -1;
	return EADDRINUSE;
}

static void *copy(const void *a, socklen_t n)
{
	void *p = n ? calloc(1, sizeof(struct sockaddr_storage)) : NULL;

	return p ? memcpy(p, a, n) : NULL;
}

/* The first of getaddrinfo's addresses, as one of r's. */
static int resolve(const char *node, const char *service, const struct rdma_addrinfo *hints, struct rdma_addrinfo *r)
{
	int passive = hints->ai_flags & RAI_PASSIVE, numeric = hints->ai_flags & RAI_NUMERICHOST;
	int datagram = hints->ai_qp_type == IBV_QPT_UD || hints->ai_port_space == RDMA_PS_UDP;
	struct addrinfo want = {.ai_flags = (passive ? AI_PASSIVE : 0) | (numeric ? AI_NUMERICHOST : 0),
		.ai_family = hints->ai_family, .ai_socktype = datagram ? SOCK_DGRAM : SOCK_STREAM}, *got;
	int err = getaddrinfo(node, service, &want, &got);

	if (err)
		return errno = EADDRNOTAVAIL, err;
	r->ai_family = got->ai_family;
	r->ai_qp_type = datagram ? IBV_QPT_UD : IBV_QPT_RC;
	r->ai_port_space = datagram ? RDMA_PS_UDP : RDMA_PS_TCP;
	if (passive)
		r->ai_src_addr = copy(got->ai_addr, r->ai_src_len = got->ai_addrlen);
	else
		r->ai_dst_addr = copy(got->ai_addr, r->ai_dst_len = got->ai_addrlen);
	freeaddrinfo(got);
	return 0;
}

CM_API int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
			    struct rdma_addrinfo **res)
{
	static const struct rdma_addrinfo none;
	struct rdma_addrinfo *r;
	int err = 0;

	if (!node && !service && !hints)
		return cm_fail(EINVAL);
	if (!(r = calloc(1, sizeof(*r))))
		return -1;
	hints = hints ? hints : &none;
	r->ai_flags = hints->ai_flags, r->ai_family = hints->ai_family;
	if (node || service)
		err = resolve(node, service, hints, r);
	else
		r->ai_dst_addr = copy(hints->ai_dst_addr, r->ai_dst_len = hints->ai_dst_len);
	if (hints->ai_qp_type)
		r->ai_qp_type = hints->ai_qp_type;
	if (hints->ai_port_space)
		r->ai_port_space = hints->ai_port_space;
	if (!r->ai_src_len)
		r->ai_src_addr = copy(hints->ai_src_addr, r->ai_src_len = hints->ai_src_len);
	if (err)
		rdma_freeaddrinfo(r);
	else
		*res = r;
	return err;
}

CM_API void rdma_freeaddrinfo(struct rdma_addrinfo *r)
{
	for (struct rdma_addrinfo *next; r; r = next) {
		next = r->ai_next;
		free(r->ai_src_addr);
		free(r->ai_dst_addr);
		free(r);
	}
}
