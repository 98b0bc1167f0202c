import Foundation

exit(Program.main())
