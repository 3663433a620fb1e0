# Completes the words of `tonari` in fish. The commands and options are `complete` commands, which `tonari generate
# completion fish` prints, with lists of the commands' paths, of the options that take a value, and of the commands that
# are followed by a program.

# Prints the command that the words before the cursor name, such as "tonari bench"; then, if a program has begun, one
# line per word of it.
function __tonari_parse
    set -l words (commandline -opc)
    set -l at tonari
    set -l i 2
    set -l program
    while test $i -le (count $words)
        set -l word $words[$i]
        contains -- $word -np --np; and set word -n
        if test "$word" = --; and contains -- $at $__tonari_runs_program
            set program (math $i + 1)
            break
        else if string match -q -- '-*' $word
            contains -- "$at $word" $__tonari_with_value; and set i (math $i + 1)
        else if contains -- "$at $word" $__tonari_commands
            set at "$at $word"
        else if contains -- $at $__tonari_runs_program
            set program $i
            break
        end
        set i (math $i + 1)
    end
    echo $at
    test -n "$program"; or return
    echo --
    test $program -le (count $words); and printf '%s\n' $words[$program..-1]
end

# Whether the words before the cursor name the command $argv, and no program has begun.
function __tonari_at
    set -l parsed (__tonari_parse)
    test (count $parsed) -eq 1; and test "$parsed[1]" = "$argv"
end

# Whether the cursor is at a program, or at one of its arguments.
function __tonari_at_program
    set -l parsed (__tonari_parse)
    test (count $parsed) -gt 1; and return 0
    contains -- $parsed[1] $__tonari_runs_program; and not string match -q -- '-*' (commandline -ct)
end

function __tonari_complete_program
    set -l parsed (__tonari_parse)
    complete -C (string join ' ' -- $parsed[3..-1] (commandline -ct))
end

complete -c tonari -f
complete -c tonari -n __tonari_at_program -a '(__tonari_complete_program)'
complete -c tonari -n '__tonari_at tonari help' -a '(string match -rg "^tonari (\S+)\$" $__tonari_commands)'
