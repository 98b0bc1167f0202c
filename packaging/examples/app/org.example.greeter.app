# Shipped in /usr/lib/identityd/apps.d: identityd.conf(5), section APP MANIFESTS. From the moment it is there the app is
# installed, until it goes. Over an upgrade and a downgrade dpkg puts the new file in the old one's place.
[App]
Vendor=org.example
Unit=greeter.service
