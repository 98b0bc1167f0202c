import Glibc

exit(Daemon.main())
