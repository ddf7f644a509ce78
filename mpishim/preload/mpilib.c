/* Finds the MPI library behind us at run time, and knows it by its symbols. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "mpilib.h"

struct pw_mpi pw_mpi;

/* Data. If the program has a copy of the variable, that copy counts. */
static void *data_symbol(const char *name)
{
	void *d = dlsym(RTLD_DEFAULT, name);

	return d ? d : pw_symbol(name);
}

static pw_word same(int handle) { return (pw_word)(unsigned)handle; }

/* The function that converts a Fortran handle to C. In MPICH's ABI it is a macro. */
static pw_word (*f2c(const char *name))(int)
{
	pw_word (*f)(int) = pw_symbol(name);

	return f ? f : same;
}

/* Variables with the addresses of MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE in Fortran. */
static const char *const ignores[PW_IGNORES] = {"MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE",
		"MPI_F08_STATUS_IGNORE", "MPI_F08_STATUSES_IGNORE"};

/* In Open MPI a handle is a pointer. */
static void set_open_mpi(struct pw_mpi *m)
{
	m->comm_world = (pw_word)data_symbol("ompi_mpi_comm_world");
	m->handle_bytes = sizeof(void *);
	m->comm_self = (pw_word)data_symbol("ompi_mpi_comm_self");
	m->comm_null = (pw_word)data_symbol("ompi_mpi_comm_null");
	m->type_null = (pw_word)data_symbol("ompi_mpi_datatype_null");
	m->in_place[PW_C] = 1;
	m->topo_cart = 1, m->topo_graph = 2, m->topo_dist_graph = 3, m->root = -4, m->proc_null = -2, m->any_source = -1;
	m->any_tag = -1, m->err_truncate = 15;
	m->status_ints = 6, m->status_source = 0, m->status_ignore = 0;
}

/* In the ABI of MPICH, which Intel MPI and MVAPICH share, a handle is a number. */
static void set_mpich(struct pw_mpi *m)
{
	m->comm_world = 0x44000000; /* MPI_COMM_WORLD of MPICH's ABI */
	m->handle_bytes = 4;
	m->comm_self = 0x44000001;
	m->comm_null = 0x04000000;
	m->type_null = 0x0c000000;
	m->in_place[PW_C] = (pw_word)-1;
	m->topo_graph = 1, m->topo_cart = 2, m->topo_dist_graph = 3, m->root = -3, m->proc_null = -1, m->any_source = -2;
	m->any_tag = -1, m->err_truncate = 14;
	m->status_ints = 5, m->status_source = 2, m->status_ignore = 1;
}

/* In the standard ABI of MPI-5 a handle is a pointer, and predefined ones are small numbers. */
static void set_standard(struct pw_mpi *m)
{
	m->standard = 1;
	m->comm_world = 0x101;
	m->handle_bytes = sizeof(void *);
	m->comm_self = 0x102;
	m->comm_null = 0x100;
	m->type_null = 0x200;
	m->in_place[PW_C] = 1;
	m->topo_cart = 211, m->topo_graph = 212, m->topo_dist_graph = 213, m->root = -4, m->proc_null = -3;
	m->any_source = -1, m->any_tag = -2, m->err_truncate = 15;
	m->status_ints = 8, m->status_source = 0, m->status_ignore = 0;
}

/*
 * Knows the ABI of the library. MPI libraries come with an ABI of their own and with the standard one, in two files
 * that have the same version and mostly the same calls, MPI_Abi_get_version among them. No question about a handle
 * tells, since the wrong one may end the program; but the standard has a name for the file.
 */
static void set_abi(struct pw_mpi *m, const char *version)
{
	Dl_info lib = {0};
	const char *base;

	if (!dladdr(pw_symbol("PMPI_Comm_rank"), &lib) || !lib.dli_fname)
		lib.dli_fname = "";
	base = strrchr(lib.dli_fname, '/');
	base = base ? base + 1 : lib.dli_fname;
	if (!strncmp(base, "libmpi_abi", strlen("libmpi_abi")))
		set_standard(m);
	else if (data_symbol("ompi_mpi_comm_world"))
		set_open_mpi(m);
	else if (pw_symbol("PMPI_Abi_get_version") && strncmp(base, "libmpi", strlen("libmpi")))
		; /* either ABI, such as in a program that has MPI inside */
	else if (strstr(version, "MPICH") || strstr(version, "Intel") || strstr(version, "MVAPICH"))
		set_mpich(m);
}

static void find_functions(struct pw_mpi *m)
{
	m->type_size = pw_symbol("PMPI_Type_size");
	m->type_size_x = pw_symbol("PMPI_Type_size_x");
	m->type_extent = pw_symbol("PMPI_Type_get_extent");
	m->comm_size = pw_symbol("PMPI_Comm_size");
	m->comm_rank = pw_symbol("PMPI_Comm_rank");
	m->comm_test_inter = pw_symbol("PMPI_Comm_test_inter");
	m->comm_remote_size = pw_symbol("PMPI_Comm_remote_size");
	m->comm_get_parent = pw_symbol("PMPI_Comm_get_parent");
	m->comm_group = pw_symbol("PMPI_Comm_group");
	m->group_translate = pw_symbol("PMPI_Group_translate_ranks");
	m->group_free = pw_symbol("PMPI_Group_free");
	m->group_rank = pw_symbol("PMPI_Group_rank");
	m->group_size = pw_symbol("PMPI_Group_size");
	m->group_from_session_pset = pw_symbol("PMPI_Group_from_session_pset");
	m->comm_remote_group = pw_symbol("PMPI_Comm_remote_group");
	m->win_group = pw_symbol("PMPI_Win_get_group");
	m->test_cancelled = pw_symbol("PMPI_Test_cancelled");
	m->error_class = pw_symbol("PMPI_Error_class");
	m->comm_f2c = f2c(m->standard ? "PMPI_Comm_fromint" : "PMPI_Comm_f2c");
	m->type_f2c = f2c(m->standard ? "PMPI_Type_fromint" : "PMPI_Type_f2c");
	m->win_f2c = f2c(m->standard ? "PMPI_Win_fromint" : "PMPI_Win_f2c");
	m->request_f2c = f2c(m->standard ? "PMPI_Request_fromint" : "PMPI_Request_f2c");
	m->message_f2c = f2c(m->standard ? "PMPI_Message_fromint" : "PMPI_Message_f2c");
	m->topo_test = pw_symbol("PMPI_Topo_test");
	m->cartdim_get = pw_symbol("PMPI_Cartdim_get");
	m->graph_neighbors_count = pw_symbol("PMPI_Graph_neighbors_count");
	m->dist_graph_neighbors_count = pw_symbol("PMPI_Dist_graph_neighbors_count");
}

/* The constants that Fortran passes by address. */
static void find_fortran(struct pw_mpi *m)
{
	char *common;

	for (unsigned i = 0; i < PW_IGNORES; i++)
		m->fortran_ignore[i] = data_symbol(ignores[i]);
	m->in_place[PW_FORTRAN] = (pw_word)data_symbol("mpi_fortran_in_place_");
	m->bottom[PW_FORTRAN] = (pw_word)data_symbol("mpi_fortran_bottom_");
	/* mpif.h of MPICH: MPI_BOTTOM, MPI_IN_PLACE, ... */
	if (!m->in_place[PW_FORTRAN] && (common = data_symbol("mpipriv1_"))) {
		m->bottom[PW_FORTRAN] = (pw_word)common;
		m->in_place[PW_FORTRAN] = (pw_word)common + 4;
	}
}

/* The first line of the library's version, for the report. */
static void set_name(const char *version)
{
	snprintf(pw.library, sizeof pw.library, "%.63s", version);
	pw.library[strcspn(pw.library, "\n,")] = 0;
	for (char *p = pw.library; *p; p++)
		if (*p == '\t')
			*p = ' ';
}

void pw_mpi_init(void)
{
	struct pw_mpi m = {0};
	int (*version)(char *, int *) = pw_symbol("PMPI_Get_library_version");
	char text[8192] = ""; /* MPI_MAX_LIBRARY_VERSION_STRING of MPICH, the longest */
	int n = 0;

	if (version && !version(text, &n))
		set_name(text);
	set_abi(&m, text);
	find_functions(&m);
	find_fortran(&m);
	m.known = m.handle_bytes && m.type_size && m.type_extent && m.comm_size && m.comm_rank && m.comm_group &&
		  m.group_translate && m.group_free && m.group_rank && m.group_size;
	pw_mpi = m;
	if (m.known)
		return;
	pw_disable();
	pw_warn("this MPI library is not known (%s); going on without Pinwheel",
			text[0] ? pw.library : "it has no version");
}

int pw_mpi_world_group(pw_word *group)
{
	*group = 0;
	if (!pw_mpi.by_session)
		return pw_mpi.comm_group(pw_mpi.comm_world, group);
	return !pw_mpi.session || !pw_mpi.group_from_session_pset ||
			pw_mpi.group_from_session_pset(pw_mpi.session, "mpi://WORLD", group);
}

int pw_mpi_is_spawned(void)
{
	pw_word parent = 0;

	return !pw_mpi.by_session && pw_mpi.comm_get_parent && !pw_mpi.comm_get_parent(&parent) &&
	       pw_mpi_handle(parent) != pw_mpi.comm_null;
}

void pw_mpi_world(int32_t *rank, int32_t *size)
{
	pw_word group;
	int n = -1;

	if (pw_mpi_world_group(&group))
		return;
	if (!pw_mpi.group_rank(group, &n))
		*rank = n;
	if (!pw_mpi.group_size(group, &n))
		*size = n;
	pw_mpi.group_free(&group);
}

pw_word pw_mpi_session(const void *at, enum pw_language language)
{
	if (language == PW_FORTRAN)
		return f2c(pw_mpi.standard ? "PMPI_Session_fromint" : "PMPI_Session_f2c")(*(const int *)at);
	return pw_mpi.handle_bytes == 4 ? *(const uint32_t *)at : *(const pw_word *)at;
}

/* Datatypes of C that every library with the standard ABI has: MPI_AINT, ..., MPI_BYTE. Those of Fortran are optional,
 * so they are learned at their first use. */
static const uint16_t standard_types[] = {0x201, 0x202, 0x203, 0x207, 0x208, 0x209, 0x20a, 0x20b, 0x20c, 0x20d, 0x20e,
		0x20f, 0x210, 0x212, 0x214, 0x216, 0x220, 0x243, 0x244, 0x245, 0x247};

/* Open MPI numbers its predefined datatypes for Fortran from 0 on, and has no others yet. */
void pw_mpi_each_type(const struct pw_datatype *(*see)(pw_word type))
{
	pw_word type;

	if (pw_mpi.standard) {
		for (unsigned i = 0; i < sizeof standard_types / sizeof *standard_types; i++)
			see(standard_types[i]);
		return;
	}
	for (int i = 0; pw_mpi.type_f2c != same && pw_mpi.handle_bytes != 4 && i < 1000 && (type = pw_mpi.type_f2c(i)); i++)
		see(type);
}

int64_t pw_mpi_basic_bytes(pw_word type)
{
	return pw_mpi.handle_bytes == 4 && type >> 24 == 0x4c ? (int64_t)(type >> 8 & 0xff) : 0;
}

int pw_is_inter(pw_word comm)
{
	int inter = 0;

	return pw_mpi.comm_test_inter && pw_mpi.comm_remote_size && !pw_mpi.comm_test_inter(comm, &inter) && inter;
}

void pw_neighbor_counts(pw_word comm, int rank, int *sources, int *destinations)
{
	int kind = 0, n = 0, in = 0, out = 0, weighted;

	*sources = *destinations = 0; /* no topology: a call that needs one will fail */
	if (!pw_mpi.topo_test || pw_mpi.topo_test(comm, &kind))
		return;
	if (kind == pw_mpi.topo_cart && !pw_mpi.cartdim_get(comm, &n))
		*sources = *destinations = 2 * n;
	if (kind == pw_mpi.topo_graph && !pw_mpi.graph_neighbors_count(comm, rank, &n))
		*sources = *destinations = n;
	if (kind == pw_mpi.topo_dist_graph && !pw_mpi.dist_graph_neighbors_count(comm, &in, &out, &weighted)) {
		*sources = in;
		*destinations = out;
	}
}
