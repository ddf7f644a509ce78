/* rdma resource show: what all processes have on the device, in the form of rdma-resource(8). */
#include "sv.h"

int main(int argc, char **argv)
{
	unsigned cqs = 0, qps = 0, mrs = 0, living = 0;

	if (argc < 2 || strncmp(argv[1], "res", 3)) {
		fprintf(stderr, "usage: rdma resource show\n");
		return 2;
	}
	if (!sv_attach()) {
		sv_bury_dead();
		for (uint32_t i = 0; i < SV_PROCS; i++)
			living += sv->proc[i].live;
		for (uint32_t i = 0; i < SV_KEYS; i++)
			mrs += sv->key[i].key != 0;
		for (uint32_t i = 0; i < SV_QPS; i++)
			qps += sv->qp[i].live;
		for (uint32_t i = 0; i < SV_CQS; i++)
			cqs += sv->cq[i].live;
	}
	printf("0: sv0: processes %u cq %u qp %u mr %u\n", living, cqs, qps, mrs);
	return 0;
}
