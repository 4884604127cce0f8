#!/bin/sh
# Sidekiq and the Ruby that runs it, as Debian packages them, below this folder; `ruby` here starts that Ruby with its libraries.
set -e
packages="ruby3.1 libruby3.1 libyaml-0-2 ruby-sidekiq ruby-redis ruby-connection-pool ruby-rack"
apt-get download $packages || { apt-get update && apt-get download $packages; }
for package in *.deb; do dpkg --extract "$package" .; done
rm ./*.deb
cat > ruby <<'SCRIPT'
#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
machine=$here/usr/lib/x86_64-linux-gnu
RUBYLIB=$here/usr/lib/ruby/vendor_ruby:$here/usr/lib/ruby/3.1.0:$machine/ruby/3.1.0:$machine/ruby/vendor_ruby/3.1.0
for gem in "$here"/usr/share/rubygems-integration/all/gems/*/lib; do RUBYLIB=$RUBYLIB:$gem; done
export RUBYLIB LD_LIBRARY_PATH="$machine"
exec "$here/usr/bin/ruby3.1" "$@"
SCRIPT
chmod +x ruby
