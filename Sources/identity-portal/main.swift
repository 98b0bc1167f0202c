import Glibc

exit(PortalProgram.main())
