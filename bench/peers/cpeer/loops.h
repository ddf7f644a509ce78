#include "../../ctable/ctable.h"

void run(uintptr_t cache, char *test, int a, int b, int c);

/* From main.go. */
void slow_registrations(int on);
double registered_bytes(void);
