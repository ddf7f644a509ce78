/* capi/fabric.h beside the header of libfabric: it compiles if they agree. */
#include <rdma/fi_ext.h>

#define fid_mem_monitor ours
#include "fabric.h"
#undef fid_mem_monitor

#define BYTES(s, field) sizeof(((struct s *)0)->field)
#define SAME(a, x, b, y) \
	_Static_assert(offsetof(struct a, x) == offsetof(struct b, y) && BYTES(a, x) == BYTES(b, y), #x)

SAME(fid, fclass, fabric_fid, fclass);
SAME(fid, context, fabric_fid, context);
SAME(fid, ops, fabric_fid, ops);
SAME(fi_ops, size, fabric_ops, size);
SAME(fi_ops, close, fabric_ops, close);
SAME(fid_mem_monitor, fid, ours, fid);
SAME(fid_mem_monitor, export_ops, ours, export_ops);
SAME(fid_mem_monitor, import_ops, ours, import_ops);
SAME(fi_ops_mem_monitor, size, fabric_monitor_ops, size);
SAME(fi_ops_mem_monitor, start, fabric_monitor_ops, start);
SAME(fi_ops_mem_monitor, stop, fabric_monitor_ops, stop);
SAME(fi_ops_mem_monitor, subscribe, fabric_monitor_ops, subscribe);
SAME(fi_ops_mem_monitor, unsubscribe, fabric_monitor_ops, unsubscribe);
SAME(fi_ops_mem_monitor, valid, fabric_monitor_ops, valid);
SAME(fi_ops_mem_notify, size, fabric_notify_ops, size);
SAME(fi_ops_mem_notify, notify, fabric_notify_ops, notify);
_Static_assert(FI_CLASS_MEM_MONITOR == (int)FABRIC_CLASS_MEM_MONITOR, "class");
_Static_assert(sizeof(struct fi_ops_mem_monitor) == sizeof(struct fabric_monitor_ops), "size");
