/// How long a test waits for what has to come, in seconds: only what hangs takes as long, however slow the machine is.
package let patience = 120.0
