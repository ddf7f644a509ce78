#include "cfront.h"

#include <pthread.h>
#include <stdlib.h>

__thread struct pwc_tls pwc_tls;

/* The fronts of one thread: one for each cache that it uses. */
struct pwc_fronts {
	struct pwc_tls at;
	struct pwc_fronts *next;
};

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void thread_ends(void *list)
{
	struct pwc_fronts *l = list;

	pwc_tls = (struct pwc_tls){0, NULL};
	while (l) {
		struct pwc_fronts *next = l->next;

		pwc_front_close(l->at.front);
		free(l);
		l = next;
	}
}

static void make_key(void) { pthread_key_create(&key, thread_ends); }

struct pwt_front *pwc_attach(pwc_cache cache)
{
	struct pwc_fronts *l, *head;

	pthread_once(&once, make_key);
	head = pthread_getspecific(key);
	for (l = head; l && l->at.cache != cache; l = l->next)
		;
	if (!l) {
		l = malloc(sizeof(*l));
		if (!l)
			return NULL;
		l->at = (struct pwc_tls){cache, pwc_front_open(cache)};
		l->next = head;
		if (!l->at.front || pthread_setspecific(key, l)) {
			if (l->at.front)
				pwc_front_close(l->at.front);
			free(l);
			return NULL;
		}
	}
	pwc_tls = l->at;
	return l->at.front;
}
