# Shipped in /usr/lib/identityd/apps.d; see identityd.app(5). The app is installed as long as this file exists. During an
# upgrade or a downgrade, dpkg replaces the file, and the app stays installed.
[App]
Vendor=org.example
Unit=greeter.service
