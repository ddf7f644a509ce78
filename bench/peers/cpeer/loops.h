#include "../../../regcache/cfront/cfront.h"

void run(pwc_cache cache, char *test, int a, int b, int c);

/* From main.go. */
void slow_registrations(int on);
double registered_bytes(void);
