/* The end of a process that has not called MPI_Finalize. */
#ifndef PINWHEEL_INIT_H
#define PINWHEEL_INIT_H

void pw_exit(void); /* at exit(3): keeps the profile */

#endif
