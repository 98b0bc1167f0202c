import Glibc

exit(FleetProgram.main())
