/* Recording: requests. */
#include "record.h"

/* An open hash table; a slot once used stays part of the chains through it. */
#define REQUESTS (1u << 14)
#define PROBES 64u
static struct {
	uint64_t key;
	uint32_t number; /* 0: it has completed */
} requests[REQUESTS];
static uint32_t last_number;

static unsigned place_of(uint64_t key) { return (unsigned)((key >> 1) * 0x9e3779b97f4a7c15ull >> 50) % REQUESTS; }

uint32_t pw_request_add(uint64_t key)
{
	uint32_t number = ++last_number;

	for (unsigned i = 0; i < PROBES; i++) {
		unsigned at = (place_of(key) + i) % REQUESTS;

		if (requests[at].key && requests[at].key != key && requests[at].number)
			continue;
		requests[at].key = key;
		requests[at].number = number;
		break;
	}
	return number;
}

uint32_t pw_request_slot(uint64_t key)
{
	for (unsigned i = 0; key && i < PROBES; i++) {
		unsigned at = (place_of(key) + i) % REQUESTS;

		if (requests[at].key == key && requests[at].number)
			return at + 1;
		if (!requests[at].key)
			break;
	}
	return 0;
}

uint32_t pw_request_end(uint32_t slot)
{
	uint32_t number = slot ? requests[slot - 1].number : 0;

	if (slot)
		requests[slot - 1].number = 0;
	return number;
}

#define PERSISTENTS 4096u
static struct {
	uint64_t key;
	struct pw_record record;
} persistents[PERSISTENTS];
static unsigned persistent_count;

static unsigned persistent_at(uint64_t key)
{
	unsigned i = 0;

	while (i < persistent_count && persistents[i].key != key)
		i++;
	return i;
}

void pw_persistent_add(uint64_t key, const struct pw_record *r)
{
	unsigned i = persistent_at(key); /* the handle of one that was freed comes again */

	if (i == PERSISTENTS)
		return;
	persistents[i].key = key;
	persistents[i].record = *r;
	if (i == persistent_count)
		persistent_count++;
}

const struct pw_record *pw_persistent_find(uint64_t key)
{
	unsigned i = persistent_at(key);

	return i < persistent_count ? &persistents[i].record : NULL;
}
