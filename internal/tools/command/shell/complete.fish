# Completion of NAME for fish.
function __NAME_complete
    set -l before (commandline -opc)
    set -l now (commandline -ct)
    for line in ($before[1] complete -- $before[2..-1] "$now" 2> /dev/null)
        switch $line
            case :files
                __fish_complete_path "$now"
            case :commands
                complete -C "$now"
            case '*'
                echo $line
        end
    end
end
complete -c NAME -f -a '(__NAME_complete)'
