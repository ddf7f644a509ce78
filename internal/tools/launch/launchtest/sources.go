package launchtest

// library writes into DIR/loaded what it was loaded into.
const library = `
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void loaded(void)
{
	const char *dir = getenv("FAKE_DIR");
	char path[4096];
	FILE *f;

	if (!dir || snprintf(path, sizeof path, "%s/loaded", dir) >= (int)sizeof path || !(f = fopen(path, "a")))
		return;
	fprintf(f, "%s\n", program_invocation_short_name);
	fclose(f);
}
`

// mpi is a library with the one symbol by which Open MPI is known.
const mpi = `
char ompi_mpi_comm_world[8];
int MPI_Init(int *c, char ***v) { return c == 0 && v == 0; }
int MPI_Finalize(void) { return 0; }
`

// otherMPI is a library of an MPI that nobody knows.
const otherMPI = `int MPI_Init(int *c, char ***v) { return c == 0 && v == 0; }`

// program does what its argument says, and writes its environment into
// DIR/environ. record copies the traces DIR/rank0 and so on to where
// PINWHEEL_RECORD says, report writes those of two ranks to where PINWHEEL_STATS says. finalize
// calls MPI_Finalize, after the report of one rank if it is asked for one. sometimes N does that in the first N runs,
// which DIR/runs counts; after them it makes DIR/then and does what the next argument says.
const program = `
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
int MPI_Init(int *, char ***);
int MPI_Finalize(void) __attribute__((weak)); /* not in every library */

static void copy(const char *dir, int rank)
{
	const char *pattern = getenv("PINWHEEL_RECORD"), *at;
	char from[4096], to[4096];
	FILE *in, *out;
	int c;

	if (!pattern || !(at = strstr(pattern, "%r")))
		exit(90);
	snprintf(from, sizeof from, "%s/rank%d", dir, rank);
	snprintf(to, sizeof to, "%.*s%d%s", (int)(at - pattern), pattern, rank, at + 2);
	if (!(in = fopen(from, "r")))
		return;
	if (!(out = fopen(to, "w")))
		exit(91);
	while ((c = getc(in)) != EOF)
		putc(c, out);
	fclose(in);
	fclose(out);
}

/* The report of a rank, where PINWHEEL_STATS says. */
static void tell(int rank)
{
	const char *pattern = getenv("PINWHEEL_STATS"), *at;
	char path[4096];
	FILE *f;

	if (!pattern || !(at = strstr(pattern, "%r")))
		exit(92);
	snprintf(path, sizeof path, "%.*s%d%s", (int)(at - pattern), pattern, rank, at + 2);
	if (!(f = fopen(path, "w")))
		exit(93);
	fprintf(f, "{\"rank\":%d,\"size\":2,\"pid\":9,\"command\":\"app report\"}\n", rank);
	fclose(f);
}

/* Opens a file in the directory. */
static FILE *note(const char *dir, const char *name)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (!(f = fopen(path, "a")))
		exit(94);
	return f;
}

/* Returns which run this is, from 1. */
static int again(const char *dir)
{
	FILE *f = note(dir, "runs");
	int runs;

	fputc('\n', f);
	runs = (int)ftell(f);
	fclose(f);
	return runs;
}

static void got(int signal) { _exit(40 + signal); }

int main(int argc, char **argv)
{
	const char *dir = getenv("FAKE_DIR"), *what = argc > 1 ? argv[1] : "";
	char path[4096];
	FILE *f;

	MPI_Init(&argc, &argv);
	if (dir && snprintf(path, sizeof path, "%s/environ", dir) < (int)sizeof path && (f = fopen(path, "w"))) {
		for (char **e = environ; *e; e++)
			fprintf(f, "%s\n", *e);
		fclose(f);
	}
	if (!strcmp(what, "sometimes")) {
		int times = atoi(argv[2]);

		if (again(dir) <= times) {
			what = "finalize";
		} else {
			what = argv[3];
			argv += 2;
			fclose(note(dir, "then"));
		}
	}
	if (!strcmp(what, "exit"))
		return atoi(argv[2]);
	if (!strcmp(what, "kill"))
		kill(getpid(), atoi(argv[2]));
	if (!strcmp(what, "wait")) {
		signal(SIGUSR1, got);
		signal(SIGTERM, got);
		puts("ready");
		fflush(stdout);
		for (;;)
			pause();
	}
	if (!strcmp(what, "finalize")) {
		if (getenv("PINWHEEL_STATS"))
			tell(0);
		return MPI_Finalize();
	}
	if (!strcmp(what, "record"))
		for (int rank = 0; rank < 8; rank++)
			copy(dir, rank);
	if (!strcmp(what, "report")) {
		tell(0);
		tell(1);
		return 8;
	}
	return 0;
}
`

const noMPI = `int main(void) { return 4; }`

const static = `package main

import "os"

func main() { os.Exit(3) }
`

// launchers, by name. "rank" runs a command with no variables but those of its
// options, and those that the stand-ins themselves need.
var launchers = map[string]string{
	"mpirun": `[ "$1" = --version ] && { echo "mpirun (Open MPI) 4.1.4"; exit 0; }
note "$@"
while :; do
	case $1 in
	-x) case $2 in *=*) give "$2" ;; *) give "$2=$(printenv "$2")" ;; esac; shift 2 ;;
	-n | -np | --map-by) shift 2 ;;
	--mca) shift 3 ;;
	-*) shift ;;
	*) break ;;
	esac
done
rank "$@"`,
	"mpiexec.hydra": `note "$@"
while :; do
	case $1 in
	-genv | -env) give "$2=$3"; shift 3 ;;
	-n | -np | -ppn) shift 2 ;;
	-*) shift ;;
	*) break ;;
	esac
done
rank "$@"`,
	"srun": `note "$@"
while :; do
	case $1 in
	--export=*)
		IFS=,
		for entry in ${1#--export=}; do
			case $entry in *=*) give "$entry" ;; ALL) ;; *) give "$entry=$(printenv "$entry")" ;; esac
		done
		unset IFS
		shift ;;
	-n | -N) shift 2 ;;
	-*) shift ;;
	*) break ;;
	esac
done
rank "$@"`,
	"aprun": `note "$@"
shift 2
exec "$@"`,
	"mpiexec": `[ "$1" = --version ] && { echo "mpiexec of somebody, version 1"; exit 0; }
note "$@"
shift 2
exec "$@"`,
}

const launcherHead = `#!/bin/sh
note() { printf '%s\n' "$@" > "$FAKE_DIR/argv"; env > "$FAKE_DIR/launcher"; }
vars=
give() { vars="$vars $1"; }
rank() { exec env -i "PATH=$PATH" "FAKE_DIR=$FAKE_DIR" $vars "$@"; }
`
