#!/bin/bash
# symbols.sh LIBRARY OBJECT...: writes, into the current directory, what makes our library take the place of
# the installed one: lib.map, the version of every symbol that LIBRARY exports, and rest.c, the symbols that
# the objects lack, which libraries such as libmlx5 link to. Each of these fails with ENOSYS.
set -euo pipefail
library=$1
shift
nm -g --defined-only "$@" | awk 'NF == 3 { print $3 }' | sort -u > have.txt
# Of a symbol with several versions the default one, which a program built today asks for.
readelf -W --dyn-syms "$library" | awk '$7 != "UND" && $8 ~ /@/ {
	split($8, part, /@+/); default_version = $8 ~ /@@/
	if (part[2] ~ /_[0-9.]+$/ && part[1] != part[2] && (!(part[1] in version) || default_version)) version[part[1]] = part[2]
} END { for (name in version) print version[name], name }' | sort -V > map.txt
[ -s map.txt ] || { echo "symbols.sh: $library exports nothing" >&2; exit 1; }
{
	echo '#include <errno.h>'
	awk '{ print $2 }' map.txt | while read -r name; do
		grep -qx "$name" have.txt && continue
		case $name in # NULL is how these fail
		r*) failure=-1 ;;
		ibv_create_* | ibv_import_* | ibv_reg_* | ibv_qp_to_qp_ex | verbs_open_device | *alloc_context) failure=0 ;;
		*) failure=ENOSYS ;;
		esac
		echo "long $name(void) { errno = ENOSYS; return $failure; }"
	done
} > rest.c
before=
for v in $(awk '{ print $1 }' map.txt | sort -uV); do
	echo "$v { global: $(awk -v v="$v" '$1 == v { printf "%s; ", $2 }' map.txt)${before:-local: *;} }${before:+ $before};" |
		sed "s/; $before }/; }/"
	before=$v
done > lib.map
