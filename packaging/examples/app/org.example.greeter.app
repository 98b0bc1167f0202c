# Shipped in /usr/lib/identityd/apps.d; see identityd.app(5). The app is installed when this file appears. During an
# upgrade or a downgrade, dpkg replaces the file, and the app stays installed. The script postrm uninstalls the app.
[App]
Vendor=org.example
Unit=greeter.service
