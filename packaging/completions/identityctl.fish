# Completions of identityctl(1) for fish.

# Fields of a command: words; operands; attributes; description. Fields of an option: name and value; commands that take
# it; description. A value is "a|b" for alternatives, "@source" for values from a source, or "-" for any value.
# BEGIN COMMANDS
set -g __identityctl_commands \
    'ping;;;Answer, and do nothing else.' \
    'hello;;;Show the version of the daemon and of its protocol.' \
    'help;-...;;List all verbs, or the verbs that begin with VERB.' \
    'whoami;;;Show the app, the user and the rights that the daemon attributes to the peer.' \
    'status;;;Show the daemon\'s state; most rows are only for admins and members of MonitorGroup=.' \
    'stats;;apps=yes;Show metrics, or counts by app; most are only for admins and members of MonitorGroup=.' \
    'seal;;;Prepare a golden image: end every identifier, and begin a new store at the next start.' \
    'machine compare;-;;Tell whether a machine-id is the one of this store, one that it had before, or unknown.' \
    'machine acknowledge;;;End the warnings about a change of the machine, and delete what a renewal left to the original.' \
    'machine resumed;;;Give sessions other identifiers, because the machine goes on from a snapshot, as another may do.' \
    'quit;;;Answer, then close the connection.' \
    'get uuid;;count=- version=4|7;Make UUIDs: random (version 4), or strictly ascending across all callers (version 7).' \
    'get key;-;;Show the identifier of NAME in the peer\'s session.' \
    'get session;;;Show the session\'s identifier, which lasts until the app is launched again.' \
    'get boot;;app=@app;Show the app\'s identifier of this boot, which lasts until the next boot.' \
    'get installation;;app=@app;Show the app\'s installation identifier, which lasts until the app is uninstalled.' \
    'get vendor;;app=@app;Show the vendor\'s identifier, which lasts until the vendor\'s last app is uninstalled.' \
    'get device;;app=@app;Show the device identifier, which lasts until the system is reset.' \
    'check;-;;Check whether VALUE is a UUID, and show its canonical form.' \
    'resolve;-;;Show the level and the owner of a present or past identifier.' \
    'history;installation|vendor|device;app=@app;List the identifiers of a level, oldest first, with their times, causes and authors.' \
    'renew;installation|vendor|device;app=@app replaces=yes;Replace the identifier of a level with a random one, or list the identifiers to replace.' \
    'migrate device;-;item=@account service=@service group=@group app=@app commit=yes force=yes;Adopt a device identifier that an earlier system issued.' \
    'migrate installation;-;item=@account service=@service group=@group app=@app commit=yes force=yes;Adopt an installation identifier that an earlier system issued.' \
    'app list;;;List the installed apps: all apps for an admin, otherwise the apps of the peer\'s vendor.' \
    'app forget;@app;unused=- app=-;Uninstall an app without a manifest, or all unused apps that never had one and have no items.' \
    'account;;;Show the name of the account that this device belongs to, or "" for none.' \
    'account set;-;;Set the name of the account; replacing an earlier name removes all other devices.' \
    'account clear;;;Leave the account; only this device stays in the list of devices.' \
    'devices;;;List the devices of the account, among them this device once it has an identifier.' \
    'devices name;-;;Name this device in the list of devices.' \
    'devices put;-;name=- seen=- generation=- counter=- record=- replaces=- suspect=yes|no;Add a device to the list, or update it there; with record=, store its record if that is newer.' \
    'devices remove;-;generation=- counter=- record=-;Remove a device that has left the account elsewhere; with record=, store its tombstone.' \
    'devices forget;-;unused=-;Remove a device from the list, or all devices that have not been heard of for so many days.' \
    'fleet open;;run=-;Begin a run of the fleet on this connection; show earlier runs and the counter of this device.' \
    'fleet next;;above=-;Show the next counter of this device: greater than the last one and than N.' \
    'fleet records;;after=- limit=-;List the stored records and tombstones of devices in the order of their UUIDs, those after a UUID.' \
    'fleet rekeyed;;original=-;Note that the service has made other keys than those of the original, which fleet open named.' \
    'fleet twin;;copy=yes|no|unknown;Report that another machine speaks for this device, and whether this machine is the copy.' \
    'fleet said;;state=- said.;Show these words about the fleet in status until this connection, which has the fleet open, ends.' \
    'item add;;service=@service account=@account group=@group label=- attr. this-device-only=yes lifetime=installation;Add an item: a secret that is identified by group, service and account.' \
    'item put;;service=@service account=@account group=@group label=- attr. this-device-only=yes lifetime=installation;Add an item, or replace the item of the same group, service and account.' \
    'item read;;service=@service account=@account group=@group label=- attr.;Show the secret and the attributes of the item that matches every condition, at least one.' \
    'item find;;service=@service account=@account group=@group|* label=- attr. data=yes limit=one|all;List the items that match every condition, with their secrets if they are asked for.' \
    'item update;;service=@service account=@account group=@group where.label=- where.attr. label=- attr.;Change properties of the item that matches every condition; an empty label or attribute is removed.' \
    'item delete;;service=@service account=@account group=@group label=- attr.;Delete the items that match every condition, at least one, or list what matches now.' \
    'version report;-;build=- order=numeric|semver|debian|linux|auto app=@app;Report the running version, and compare it with the version of the last session.' \
    'version state;;of=app|os app=@app|*;Show the version report of this session, or else the last; app=* is for admins and the fleet.' \
    'version history;;of=app|os app=@app;List all reported versions, in the order of their first reports.' \
    'version compare;- -;build=- build2=- order=numeric|semver|debian|linux|auto;Compare version A, of build=, with version B, of build2=.' \
    'version claim;-;app=@app;Claim work that is done once per version; only the first caller gets the answer \'first\'.' \
    'token put;- -;environment=- topic=- renewed=yes app=@app;Set the app\'s push token of a provider, in place of the previous token.' \
    'token get;-;app=@app;Show the app\'s push token of a provider, with its state and its times.' \
    'token list;;stale=- app=@app|* after=@app limit=-;List the app\'s push tokens, or those not confirmed for SECONDS; app=* is for admins and the fleet.' \
    'token invalidate;- -;app=@app;Mark a push token as invalid if it is still the app\'s token of the provider.' \
    'token delete;-;app=@app;Delete the app\'s push token of a provider, or show it.' \
    'prove;-;lifetime=- nonce=- app=@app;Make a proof of the app for AUDIENCE: a signed statement that a server can verify.' \
    'proof keys;;;Show the public keys by which a server verifies proofs of this device, as a JWK Set.' \
    'proof rotate;;revoke=yes|no;Publish a new proof key, which signs later, or with revoke=yes replace the present one at once.' \
    'subscribe;device|installation|vendor|app|devices|account|item|version|token|proof...;since=- epoch=- snapshot=yes;Send the events of these topics, or of all topics; with since=, first the events after SEQ.' \
    'unsubscribe;device|installation|vendor|app|devices|account|item|version|token|proof...;;Stop sending the events of these topics, or of all topics.' \
    'key rotate;;;Wrap the store\'s data key in a new master key.' \
    'key protect;;;Wrap the store\'s data key in this recovery key of 32 bytes as well, in place of an earlier one.' \
    'key recover;;;Open the store\'s data key with the recovery key, and wrap it in the present master key.' \
    'backup;;key=-;Send a backup without this-device-only items, encrypted with a key of 32 bytes.' \
    'restore begin;;key=-;Begin to upload a backup that is encrypted with this key.' \
    'restore add;;data=-;Upload the next piece of the backup: the data= of one row of \'backup\'.' \
    'restore end;;dry-run=yes adopt-device=yes;Restore the uploaded backup, or list what that would change.' \
    'monitor;device|installation|vendor|app|devices|account|item|version|token|proof...;;Write the events of these topics, or of all topics, as they happen.' \
    'wait;device|installation|vendor|app|devices|account|item|version|token|proof device|installation|vendor|app|devices|account|item|version|token|proof...;;Wait for the next event of these topics, write it and exit.' \
    'version changed;-;build=- order=numeric|semver|debian|linux|auto of=app|os app=@app;Exit with 0 if VERSION, or the last report, differs from the last session\'s version, else with 1.' \
    'version compare;- lt|le|eq|ne|ge|gt -;build=- build2=- order=numeric|semver|debian|linux|auto;Exit with 0 if the comparison holds, else with 1.' \
    'backup;@file;;Write a backup to FILE, encrypted with a passphrase.' \
    'restore;@file;;Restore the backup in FILE.' \
    'credential put;- -;owner=-;Store a secret that a service gets as its credential NAME, and write the setting for its unit.' \
    'credential list;-;owner=-;List the credentials that are stored for services, or for one of them.' \
    'credential delete;- -;owner=-;Delete the credential NAME of a service.' \
    'proof verify;@file;;Verify the proof in FILE by the key set of --keys, for --audience, and show its claims.' \
    'proof discovery;;;Write the files by which relying parties find the keys of this device, for the web server of Issuer=.' \
    'env otel;;;Write an environment variable with the identifiers of this device and this launch, for OpenTelemetry.' \
    'check;;;Without a VALUE: examine the daemon and the system, and show commands that repair faults.' \
    'account create;-;;Make an account of the fleet, with this device as its first member.' \
    'account invite;;;Invite a device with a code, or write an invitation into a file. A person with either can join.' \
    'account join;-;;Join an account with a code, or by the invitation in a file.' \
    'account leave;;;Leave the account; the other devices remove this one from their lists.' \
    'account rotate;;without=-;Replace the key of the account; the removed devices do not get it.' \
    'fleet setup;-;;Name a broker to the fleet\'s service, have the service try the broker, and enable the service.' \
    'fleet status;;;Show the state of the fleet\'s service, or with --key the reports of a site\'s devices.' \
    'fleet peers;;;Ask the other devices of the account whether they are connected, and show those that are.' \
    'fleet sync;;;Read the messages of the account at the broker now.' \
    'fleet keys;;;Write the public proof keys of each device of the account, or of a site, for relying parties.' \
    'fleet keygen;site|sender -;;Make the keys of a site or of a sender, and show the setting for its devices.' \
    'fleet credentials;;;Show the user and the password of the account at a broker.'
set -g __identityctl_options \
    '--socket=@file;;Connect to the daemon at this socket.' \
    '--user;;Connect to this user\'s own daemon instead of the system\'s.' \
    '--json;;Write the answer, each event or an error as JSON.' \
    '--quiet;;Write only errors and events; the exit status is the answer.' \
    '--format=hyphen|plain|urn|upper|table;;Write UUIDs as hyphen (default), plain, urn or upper; or write a table, in a pipe, too.' \
    '--full;;Write every value of a table in full, and times instead of ages.' \
    '--color=auto|always|never;;Write in colour: auto (default; on a terminal), always or never.' \
    '--no-pager;;Do not show long output with a pager.' \
    '--timeout=-;;Exit with status 6 if the daemon sends nothing for this time (25 by default), or \'wait\' sees no event.' \
    '--yes;;Do not ask before a verb that cannot be undone.' \
    '--version;;Show the version and exit.' \
    '--help;;Show this help and exit.' \
    '--all;help;List the verbs that only programs use, and the options of single commands, too.' \
    '--since=-;monitor|wait;Begin after event SEQ instead of with new events.' \
    '--epoch=-;monitor|wait;The epoch of SEQ; if another has begun, events may have been missed.' \
    '--file=@file;migrate device|migrate installation;Read VALUE from this file; - is standard input.' \
    '--field=-;migrate device|migrate installation;Read VALUE from the line NAME=value or NAME: value of the file.' \
    '--file=@file;account invite|account join|fleet setup;Write the invitation to this file, or read it from there.' \
    '--ca-file=@file;fleet setup;Trust the authorities with these certificates, or the broker\'s own one.' \
    '--password-file=@file;fleet setup;Read the password from this file; - is standard input.' \
    '--create=-;fleet setup;Make an account afterwards.' \
    '--join=-;fleet setup;Join an account with a code afterwards; - is a code on standard input.' \
    '--no-passphrase;account invite;Write the invitation without a passphrase: a person with the file can join.' \
    '--file=@file;fleet keygen;Write the private keys to this new file, which only this user can read.' \
    '--key=@file;fleet status;Show the reports of the site\'s devices, with the key of the site in this file.' \
    '--stale=-;fleet status;Show only devices that have sent no report for this time.' \
    '--previous;fleet credentials;Show the passwords of before the last replacement of the account\'s key.' \
    '--stale=-;devices;Show only devices that were not heard from for this time.' \
    '--data-file=@file;item add|item put|item update|credential put|key protect|key recover;Read the secret from this file, unchanged; - is standard input.' \
    '--allow-empty;item add|item put|item update|credential put;Send an empty secret, too, instead of taking it for a failure.' \
    '--raw;item read;Write only the bytes of the secret, unchanged.' \
    '--token-file=@file;token put|token invalidate;Read TOKEN from this file, without its line feed; - is standard input.' \
    '--keys=@file;proof verify;Verify by the key set in this file, as \'proof keys --json\' writes it.' \
    '--audience=-;proof verify;Refuse a proof for another audience.' \
    '--output=@file;fleet keys;Write a directory for each device below this one, readable by all users.' \
    '--key=@file;fleet keys;Write the keys of the site\'s devices, with the key of the site in this file.' \
    '--combined;fleet keys;Write the file \'combined\', too, which is for \'proof verify\' alone.' \
    '--output=@file;proof discovery;Write the files below this directory, readable by all users.' \
    '--root=@file;seal;Delete the identity of the system below DIR, on which no daemon runs, instead of asking a daemon.' \
    '--openmetrics;stats|check;Write the metrics in the OpenMetrics 1.0 format.' \
    '--prometheus;stats|check;Write the metrics in the Prometheus text format, for node_exporter\'s textfile collector.' \
    '--output=@file;stats|check;Replace FILE atomically with the metrics, readable by all users.' \
    '--passphrase-fd=-;backup|restore|account invite|account join|fleet setup;Read the passphrase from file descriptor N instead of the terminal.' \
    '--dry-run;seal|machine acknowledge|renew|app forget|account set|account clear|devices forget|item delete|version report|token delete|key recover|backup|restore;Change nothing; only show what would change.' \
    '--replaces;renew;The same as replaces=yes: end the former identifier, although this may be a copy.' \
    '--adopt-device;restore;Adopt the backup\'s device identifier on another machine.'
# END COMMANDS

# Parses the words before the cursor into variables of the caller.
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
            # An attribute at the cursor is not a condition, even if it was given before.
            contains -- $name service account group; and not string match -q -- "$name=*" $current
            and set -a conditions $word
        else if test (count $positional) = 0; and test (string lower -- $word) = help
            set helps 1
        else
            set -a positional (string lower -- $word)
        end
    end
end

# Returns whether the words before the cursor begin with one of these commands.
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

# Sends a request, and prints the value of an attribute in each row, or the first word of each row if no attribute is
# named. Omits values with hidden characters. Prints nothing if the daemon does not answer within a second.
function __identityctl_ask --no-scope-shadowing -a name
    if test -z "$name"
        timeout 1 identityctl $socket $argv[2..-1] 2>/dev/null </dev/null | string match -rv '^"'
    else
        # Clients choose the names within "attributes".
        timeout 1 identityctl $socket --json $argv[2..-1] 2>/dev/null </dev/null |
            LC_ALL=C sed -E 's/"attributes":\\{("([^"\\\\]|\\\\.)*":"([^"\\\\]|\\\\.)*",?)*\\}//g' |
            LC_ALL=C grep -aoE "\"$name\":\"([^\"\\\\]|\\\\[\"\\\\])*\"" |
            LC_ALL=C sed -e "s/^\"$name\":\"//" -e 's/"$//' -e 's/\\\\\\(["\\\\]\\)/\\1/g' | LC_ALL=C sort -u
    end
end

# Prints the possible values after a prefix.
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

# Prints the words and attributes that may follow the words before the cursor, or the values of an attribute.
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
    # A command of two words takes precedence. Otherwise the command has one word, and the second may be an operand.
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
