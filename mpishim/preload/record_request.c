/* Recording: requests and other operations that outlast a call. */
#include <stdlib.h>
#include <string.h>

#include "record_request.h"

/* Hash tables of queues, first in, first out. */
#define BUCKETS 1024u
static struct bucket {
	struct pw_pending *first, **end;
} *tables[PW_TABLES];
static uint64_t places[PW_TABLES], used[PW_TABLES];

static struct pw_pending *spare; /* free ones */
static uint32_t last_number;

static struct bucket *bucket_of(struct bucket *table, uint64_t n, uint64_t key)
{
	return &table[((key ^ key >> 4) * 0x9e3779b97f4a7c15ull >> 32) & (n - 1)];
}

static void append(struct bucket *b, struct pw_pending *p)
{
	p->next = NULL;
	if (!b->first)
		b->end = &b->first;
	*b->end = p;
	b->end = &p->next;
}

static void grow(enum pw_table t)
{
	uint64_t n = places[t] ? 4 * places[t] : BUCKETS;
	struct bucket *larger = calloc(n, sizeof *larger);

	if (!larger)
		return; /* the table stays small and gets slow */
	for (uint64_t i = 0; i < places[t]; i++)
		for (struct pw_pending *p = tables[t][i].first, *next; p; p = next) {
			next = p->next;
			append(bucket_of(larger, n, p->key), p);
		}
	free(tables[t]);
	tables[t] = larger;
	places[t] = n;
}

uint32_t pw_pending_number(void)
{
	if (!++last_number)
		last_number = 1;
	return last_number;
}

struct pw_pending *pw_pending_new(struct pw_comm *c)
{
	struct pw_pending *p = spare;

	if (p)
		spare = p->next;
	else if (!(p = malloc(sizeof *p)))
		return NULL;
	memset(p, 0, sizeof *p);
	p->comm = pw_comm_keep(c);
	return p;
}

void pw_pending_end(struct pw_pending *p)
{
	if (!p)
		return;
	pw_comm_drop(p->comm);
	p->next = spare;
	spare = p;
}

void pw_pending_put(enum pw_table t, uint64_t key, struct pw_pending *p)
{
	if (used[t] >= places[t])
		grow(t);
	if (!places[t]) {
		pw_pending_end(p);
		return;
	}
	p->key = key;
	append(bucket_of(tables[t], places[t], key), p);
	used[t]++;
}

void pw_pending_put_back(enum pw_table t, struct pw_pending *p)
{
	struct bucket *b = bucket_of(tables[t], places[t], p->key);

	if (!b->first)
		b->end = &p->next;
	p->next = b->first;
	b->first = p;
	used[t]++;
}

struct pw_pending *pw_pending_see(enum pw_table t, uint64_t key)
{
	struct pw_pending *p = places[t] && key ? bucket_of(tables[t], places[t], key)->first : NULL;

	while (p && p->key != key)
		p = p->next;
	return p;
}

struct pw_pending *pw_pending_take(enum pw_table t, uint64_t key)
{
	struct bucket *b;

	if (!places[t] || !key)
		return NULL;
	b = bucket_of(tables[t], places[t], key);
	for (struct pw_pending **at = &b->first, *p; (p = *at); at = &p->next)
		if (p->key == key) {
			if (!(*at = p->next))
				b->end = at;
			used[t]--;
			return p;
		}
	return NULL;
}
