# The manifest of the fleet's service, see identityd.app(5).
[App]
Unit=identity-fleet.service
User=identity-fleet
Rights=fleet
