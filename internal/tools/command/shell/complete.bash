# Completion of NAME for bash 4.4 and newer: source it.
_NAME() {
	local line cur=${COMP_WORDS[COMP_CWORD]}
	local -a files
	[[ $cur == = ]] && cur=
	COMPREPLY=()
	while IFS= read -r line; do
		case $line in
		:files)
			compopt -o filenames
			mapfile -t files < <(compgen -f -- "$cur")
			COMPREPLY+=("${files[@]}")
			;;
		:commands)
			mapfile -t files < <(compgen -c -- "$cur")
			COMPREPLY+=("${files[@]}")
			;;
		*) COMPREPLY+=("$line") ;;
		esac
	done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
}
complete -F _NAME NAME
