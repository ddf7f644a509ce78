/* What the Go side of libpinwheel-vmmc.so sees of pinwheel_vmmc.h. */
#ifndef PINWHEEL_VMMC_OBJECTS_H
#define PINWHEEL_VMMC_OBJECTS_H

#include <errno.h>
#include "pinwheel_vmmc.h"
#include <stdlib.h>
#include <string.h>

/* All objects: a runtime/cgo.Handle. */
struct pinwheel_vmmc_node { uintptr_t handle; };
struct pinwheel_vmmc_export { uintptr_t handle; };
struct pinwheel_vmmc_import { uintptr_t handle; };
struct pinwheel_vmmc_mapping { uintptr_t handle; };
struct pinwheel_vmmc_op { uintptr_t handle; };

/* Sizes of structures in the header of version 0. Later ones may have more fields behind. */
enum { vmmc_options_0 = 56, vmmc_permissions_0 = 48, vmmc_import_info_0 = 24 };

/* Go has no const: with these names, its prototypes are those of the header. */
typedef const char vmmc_text;
typedef const void *vmmc_bytes;
typedef const pinwheel_vmmc_options vmmc_options;
typedef const pinwheel_vmmc_permissions vmmc_permissions;
typedef void (*vmmc_handler)(void *arg, const pinwheel_vmmc_notification *notification);
typedef void (*vmmc_warn)(void *arg, const char *message);

static inline void vmmc_call_handler(vmmc_handler f, void *arg, const pinwheel_vmmc_notification *n) { f(arg, n); }
static inline void vmmc_call_warn(vmmc_warn f, void *arg, const char *message) { f(arg, message); }

/* error.c: keep the text of an error of this thread. */
void vmmc_keep_error(const char *text, size_t bytes);

#endif
