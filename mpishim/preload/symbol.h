/* The symbols behind a preloaded library. */
#ifndef PINWHEEL_SYMBOL_H
#define PINWHEEL_SYMBOL_H

/* A symbol of the library that is preloaded next, or of the MPI library; NULL if none has this name. */
void *pw_symbol(const char *name);

#endif
