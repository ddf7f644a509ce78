#compdef NAME
# Completion of NAME for zsh: put it as _NAME into a directory of fpath, or source it.
_NAME() {
	local line
	local -a before found
	before=("${(@)words[2,CURRENT]}")
	if [[ $PREFIX == --*=* ]]; then # complete the value alone
		before[-1]=("${PREFIX%%=*}" "=" "${PREFIX#*=}")
		compset -P '*='
	fi
	for line in "${(@f)$("${words[1]}" complete -- "${before[@]}" 2> /dev/null)}"; do
		case $line in
		:files) _files ;;
		:commands) _command_names -e ;;
		?*) found+=("$line") ;;
		esac
	done
	(( $#found )) && compadd -- "${found[@]}"
}
if [[ ${funcstack[1]} == _NAME ]]; then # loaded from fpath, to complete
	_NAME "$@"
else
	compdef _NAME NAME
fi
