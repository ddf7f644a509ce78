/* Names of codes, as libibverbs gives them. */
#include "sv.h"

SV_API const char *ibv_node_type_str(enum ibv_node_type t)
{
	return t == IBV_NODE_CA ? "InfiniBand channel adapter" : "unknown";
}

SV_API const char *ibv_port_state_str(enum ibv_port_state s)
{
	static const char *const name[] = {"no state change (NOP)", "down", "init", "armed", "active", "active defer"};

	return s >= 0 && (size_t)s < sizeof(name) / sizeof(*name) ? name[s] : "invalid state";
}

SV_API const char *ibv_event_type_str(enum ibv_event_type t)
{
	static const char *const name[] = {
		"CQ error", "local work queue catastrophic error", "invalid request local work queue error",
		"local access violation work queue error", "communication established", "send queue drained",
		"path migrated", "path migration request error", "local catastrophic error", "port active", "port error",
		"LID change", "P_Key change", "SM change", "SRQ catastrophic error", "SRQ limit reached", "last WQE reached",
		"client reregistration", "GID table change"};

	return t >= 0 && (size_t)t < sizeof(name) / sizeof(*name) ? name[t] : "unknown";
}

SV_API const char *ibv_wc_status_str(enum ibv_wc_status s)
{
	static const char *const name[] = {
		"success", "local length error", "local QP operation error", "local EE context operation error",
		"local protection error", "Work Request Flushed Error", "memory management operation error",
		"bad response error",
		"local access error", "remote invalid request error", "remote access error", "remote operation error",
		"transport retry counter exceeded", "RNR retry counter exceeded", "local RDD violation error",
		"remote invalid RD request", "aborted error", "invalid EE context number", "invalid EE context state",
		"fatal error", "response timeout error", "general error"};

	return s >= 0 && (size_t)s < sizeof(name) / sizeof(*name) ? name[s] : "unknown";
}
