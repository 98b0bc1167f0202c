# Completions of identityctl(1) for fish.

# Each command: its words; its operands; its attributes; what it does. Each option: its name and value; the commands it
# belongs to; what it does. A value is what may stand there, with | between, or @ and where that comes from; - for anything.
# BEGIN COMMANDS
set -g __identityctl_commands \
    'ping;;;Answer, and do nothing else.' \
    'hello;;;Say which daemon this is and which protocol it speaks.' \
    'help;-...;;List the verbs, or those that begin with VERB.' \
    'whoami;;;Say who the daemon takes the peer for, by the kernel\'s word.' \
    'status;;;Show the daemon\'s state, a row a value; most rows are for admins and members of MonitorGroup=.' \
    'stats;;apps=yes;Show what was counted and measured; apps=yes: by app; most is for admins and MonitorGroup= alone.' \
    'seal;;;Prepare a golden image: every identifier ends, and the next start is a first one.' \
    'quit;;;Answer, then close the connection.' \
    'get uuid;;count=- version=4|7;Make fresh UUIDs: version 4 at random, version 7 strictly ascending over all callers.' \
    'get key;-;;Tell the identifier of NAME in the peer\'s session.' \
    'get session;;;Tell the session\'s identifier: it lives until the app is launched again.' \
    'get boot;;app=@app;Tell the app\'s identifier of this boot: it lives until the next one.' \
    'get installation;;app=@app;Tell the app\'s installation identifier: it lives until the app is uninstalled.' \
    'get vendor;;app=@app;Tell the vendor\'s identifier: it lives until the vendor\'s last app is uninstalled.' \
    'get device;;app=@app;Tell the device identifier: it lives until the system is reset.' \
    'check;-;;Tell whether VALUE is a UUID, and its canonical form.' \
    'resolve;-;;Tell what an identifier is that this daemon gave out, or was.' \
    'history;installation|vendor|device;app=@app;List the identifiers of a level, oldest first: from when to when, why, and by whom.' \
    'renew;installation|vendor|device;app=@app dry-run=yes;Put a random identifier in the place of the one of a level, or list what that would change.' \
    'migrate device;-;item=@account service=@service group=@group app=@app commit=yes force=yes;Adopt a device identifier that an earlier system gave out.' \
    'migrate installation;-;item=@account service=@service group=@group app=@app commit=yes force=yes;Adopt an installation identifier that an earlier system gave out.' \
    'app list;;;List the installed apps: an admin sees all, an app those of its vendor.' \
    'app forget;@app;unused=- app=- dry-run=yes;Uninstall an app that has no manifest, or all such apps without items that nobody uses.' \
    'account;;;Tell the name of the account that this device belongs to, or "".' \
    'account set;-;;Name the account; under another name the list of devices begins anew.' \
    'account clear;;;Belong to no account: this device is alone in the list.' \
    'devices;;;List the devices of the account, this one among them.' \
    'devices put;-;name=- seen=-;Add a device of the account, or say more of one that is listed.' \
    'devices remove;-;;Take a device out of the list, because another place says that it left.' \
    'devices forget;-;;Take a device out of the list.' \
    'item add;;service=@service account=@account group=@group data=- label=- attr. this-device-only=yes lifetime=installation;Add an item: a secret under the key of group, service and account.' \
    'item put;;service=@service account=@account group=@group data=- label=- attr. this-device-only=yes lifetime=installation;Add an item, or replace the one that has its key.' \
    'item read;;service=@service account=@account group=@group;Tell an item\'s secret, and what is said of it.' \
    'item find;;service=@service account=@account group=@group|* label=- attr. limit=one|all;List the items that meet every condition, without their secrets.' \
    'item update;;service=@service account=@account group=@group data=- label=- attr.;Change what is named of an item; an empty label or attribute is removed.' \
    'item delete;;service=@service account=@account group=@group label=- attr.;Delete the items that meet every condition; at least one has to be given.' \
    'version report;-;build=- app=@app dry-run=yes;Report the version that runs, and learn what it is beside the last session\'s.' \
    'version state;;of=app|os app=@app;Tell what was reported last, by this session where it has reported.' \
    'version history;;of=app|os app=@app;List the versions there were, first installed first.' \
    'version compare;- -;order=numeric|linux;Tell how one version stands to another.' \
    'version claim;-;app=@app;Claim work that is to be done once a version: one caller is told that it is the first.' \
    'token put;- -;environment=- topic=- app=@app;Say which push token of a provider is the app\'s now: the one before is replaced.' \
    'token get;-;app=@app;Tell the app\'s push token of a provider, and what is known of it.' \
    'token list;;stale=- app=@app|*;List the app\'s push tokens, or those not confirmed for so long; app=* is an admin\'s.' \
    'token invalidate;- -;app=@app;Mark a push token that its provider refuses, as long as it is still the app\'s.' \
    'token delete;-;app=@app;Delete the app\'s push token of a provider.' \
    'subscribe;device|installation|vendor|app|devices|account|item|version|token...;since=- epoch=- snapshot=yes;Send events of these topics, or of all: from now on, or those after SEQ first.' \
    'unsubscribe;device|installation|vendor|app|devices|account|item|version|token...;;Send no more events of these topics, or of any.' \
    'key rotate;;;Wrap the store\'s data key in another master key.' \
    'backup;;key=-;Tell everything but this-device-only items, encrypted with a key of 32 bytes.' \
    'restore begin;;key=-;Begin to hand in a backup that this key opens.' \
    'restore add;;data=-;Hand in the next piece of the backup, as a row of it says it.' \
    'restore end;;dry-run=yes adopt-device=yes;Bring the backup that was handed in into force, or tell what that would change.' \
    'monitor;device|installation|vendor|app|devices|account|item|version|token...;;Write events of these topics, or of all, as they happen.' \
    'wait;device|installation|vendor|app|devices|account|item|version|token device|installation|vendor|app|devices|account|item|version|token...;;Write the next event of these topics, and end.' \
    'version changed;-;build=- of=app|os app=@app;Tell by the status whether VERSION, or what was reported last, differs from the last session\'s.' \
    'version compare;- lt|le|eq|ne|ge|gt -;order=numeric|linux;Tell by the status whether that is so.' \
    'top;;;Show what the daemon does, on the whole terminal, until q is typed.' \
    'backup;@file;;Write everything there is to FILE, encrypted with a passphrase.' \
    'restore;@file;;Bring a backup into force.' \
    'check;;;Without a VALUE: see whether all is in order, and what mends what is not.'
set -g __identityctl_options \
    '--socket=@file;;Ask the daemon at this socket.' \
    '--json;;Write the answer as one JSON document, or each event as one.' \
    '--quiet;;Write nothing but errors, or events; the exit status tells.' \
    '--format=hyphen|plain|urn|upper;;Write UUIDs as hyphen (default), plain, urn or upper.' \
    '--version;;Show the version, and end.' \
    '--help;;Show this help, and end.' \
    '--since=-;monitor|wait;Begin behind event SEQ, not with what happens from now on.' \
    '--timeout=-;wait;End with status 6 where nothing happens within that time.' \
    '--file=@file;migrate device|migrate installation;Take VALUE from this file; - is standard input.' \
    '--field=-;migrate device|migrate installation;Take it from the line NAME=value or NAME: value of the file.' \
    '--data-file=@file;item add|item put|item update;Take the secret from this file, as it is; - is standard input.' \
    '--raw;item read;Write the bytes of the secret as they are, and nothing else.' \
    '--token-file=@file;token put|token invalidate;Take TOKEN from this file, without its line end; - is standard input.' \
    '--openmetrics;stats;Write the figures as OpenMetrics 1.0 has them.' \
    '--prometheus;stats;Write them in Prometheus\' text format, for node_exporter\'s textfile collector.' \
    '--output=@file;stats;Put them in the place of FILE, at once and readable by all.' \
    '--interval=-;top;Look so often; 2 where nothing is said.' \
    '--passphrase-fd=-;backup|restore;Read the passphrase from descriptor N, not at the terminal.' \
    '--dry-run;restore;Change nothing, and tell what would be.' \
    '--adopt-device;restore;Take the backup\'s device identifier over on another machine.'
# END COMMANDS

# Reads the words before the cursor, for those who call it.
function __identityctl_read --no-scope-shadowing
    set positional
    set given
    set conditions
    set socket
    set helps
    set -l option
    set -l ended
    set -l before (commandline -opc)
    set current (commandline -ct | string trim --left --chars '"\'')
    for word in $before[2..-1]
        if test -n "$option"
            test $option = --socket; and set socket --socket=$word
            set option
        else if test -z "$ended"; and string match -q -- '-?*' $word
            test "$word" = --; and set ended 1
            test "$word" = --help; and set helps 1
            string match -q -- '--socket=*' $word; and set socket $word
            string match -q -- "$word=*" $__identityctl_options; and set option $word
        else if string match -qr -- '^[A-Za-z][A-Za-z0-9._-]*=' $word
            set -l name (string split -m 1 = -- $word)[1]
            set -a given $name
            # An attribute that is being written is no condition, even if it was given before.
            contains -- $name service account group; and not string match -q -- "$name=*" $current
            and set -a conditions $word
        else if test (count $positional) = 0; and test (string lower -- $word) = help
            set helps 1
        else
            set -a positional (string lower -- $word)
        end
    end
end

# Whether the words before the cursor are one of these commands.
function __identityctl_is
    set -l positional
    set -l given
    set -l conditions
    set -l socket
    set -l helps
    set -l current
    __identityctl_read
    for command in $argv
        string match -q -- "$command *" "$positional "; and return 0
    end
    return 1
end

# Asks the daemon, and writes what an attribute says in each row; without one, the first word. What has hidden characters
# is left out. Says nothing where there is no daemon, and waits for none.
function __identityctl_ask --no-scope-shadowing -a name
    if test -z "$name"
        timeout 1 identityctl $socket $argv[2..-1] 2>/dev/null </dev/null | string match -rv '^"'
    else
        timeout 1 identityctl $socket --json $argv[2..-1] 2>/dev/null </dev/null |
            LC_ALL=C grep -aoE "\"$name\":\"([^\"\\\\]|\\\\[\"\\\\])*\"" |
            LC_ALL=C sed -e "s/^\"$name\":\"//" -e 's/"$//' -e 's/\\\\\\(["\\\\]\\)/\\1/g' | LC_ALL=C sort -u
    end
end

# Writes what may stand behind a prefix.
function __identityctl_values --no-scope-shadowing -a prefix kinds
    for kind in (string split -- '|' $kinds)
        set -l values
        switch $kind
            case -
            case @file
                __fish_complete_path (string replace -- $prefix '' $current)
            case @app
                set values (__identityctl_ask '' app list)
            case @group
                set values (__identityctl_ask group item find 'group=*' $conditions)
            case '@*'
                set values (__identityctl_ask (string sub -s 2 -- $kind) item find $conditions)
            case '*'
                set values $kind
        end
        for value in $values
            printf '%s%s\n' $prefix $value
        end
    end
end

# Writes the words and attributes that may follow the words so far, or the values of an attribute.
function __identityctl_words
    set -l positional
    set -l given
    set -l conditions
    set -l socket
    set -l helps
    set -l current
    __identityctl_read
    set -l verb $positional[1]
    set -l index (count $positional)
    # Of two words, where there is such a command; else of one, and its next word may be an operand.
    if test $index -gt 1; and string match -q -- "$positional[1] $positional[2];*" $__identityctl_commands
        set verb "$positional[1] $positional[2]"
        set index (math $index - 1)
    end
    for entry in $__identityctl_commands
        set -l fields (string split -m 3 -- ';' $entry)
        set -l name (string split -m 1 -- ' ' $fields[1])
        if test (count $positional) = 0
            if test (count $name) = 1
                printf '%s\t%s\n' $name $fields[4]
            else
                printf '%s\n' $name[1]
            end
        else if test (count $positional) = 1; and test "$name[1]" = "$verb"; and test (count $name) = 2
            printf '%s\t%s\n' $name[2] $fields[4]
        end
        test -z "$helps"; and test "$fields[1]" = "$verb"; or continue
        for attribute in (string split -n -- ' ' $fields[3])
            set -l parts (string split -m 1 -- = $attribute)
            if string match -q -- "$parts[1]=*" $current
                __identityctl_values "$parts[1]=" $parts[2]
            else if string match -q -- '*.' $attribute
                printf '%s\n' $attribute
            else if contains -- $parts[1] $given
                continue
            else if string match -qr -- '[|@-]' $parts[2]
                printf '%s=\n' $parts[1]
            else
                printf '%s\n' $attribute
            end
        end
        set -l operands (string split -n -- ' ' $fields[2])
        set -l place $index
        string match -q -- '*...' "$operands[-1]"; and test $place -gt (count $operands); and set place (count $operands)
        if test $place -le (count $operands); and test $place -gt 0
            __identityctl_values '' (string replace -r -- '\.\.\.$' '' $operands[$place])
        end
    end
end

complete -c identityctl -f
complete -c identityctl -a '(__identityctl_words)'
for entry in $__identityctl_options
    set -l fields (string split -m 2 -- ';' $entry)
    set -l parts (string split -m 1 -- = (string sub -s 3 -- $fields[1]))
    set -l arguments -l $parts[1] -d $fields[3]
    test -z "$fields[2]"; or set -a arguments -n "__identityctl_is "(string escape -- (string split -- '|' $fields[2]) | string join ' ')
    if test "$parts[2]" = @file
        set -a arguments -r -F
    else if test "$parts[2]" = -
        set -a arguments -x
    else if test -n "$parts[2]"
        set -a arguments -x -a (string replace -a -- '|' ' ' $parts[2])
    end
    complete -c identityctl $arguments
end
