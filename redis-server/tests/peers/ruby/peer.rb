# Sidekiq with a Redis server: peer.rb PORT. Prints what has come of its jobs, and "ok".
ENV["REDIS_PORT"] = ARGV[0]
require_relative "job"
require "sidekiq/api"

def wait
  finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
  until yield
    raise "waited in vain" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > finish
    sleep 0.05
  end
end

def results
  Sidekiq.redis { |conn| conn.hgetall("results") }
end

Add.perform_async("first", 1, 0)
Add.perform_in(1, "later", 2, 0)
Add.perform_async("again", 3, 1)
Add.perform_async("never", 4, 9)
Sidekiq::Client.push_bulk("class" => Add, "args" => (0...100).map { |n| ["bulk:#{n}", n, 0] })
puts "scheduled #{Sidekiq::ScheduledSet.new.size}"
worker = spawn(File.join(__dir__, "ruby"), "-rsidekiq/cli", "-e",
               "cli = Sidekiq::CLI.instance; cli.parse(%w[-r ./job.rb -c 5 -q default]); cli.run", %i[out err] => File::NULL)
begin
  wait { results.size == 103 }
  puts "results #{results.values_at("first", "later", "again", "bulk:99").inspect}"
  wait { Sidekiq::DeadSet.new.size == 1 }
  puts "dead #{Sidekiq::DeadSet.new.first.args.inspect} #{Sidekiq.redis { |conn| conn.hget("tries", "never") }}"
  stats = Sidekiq::Stats.new
  puts "enqueued #{stats.enqueued} retries #{stats.retry_size}"
  puts "processes #{Sidekiq::ProcessSet.new.size}"
ensure
  Process.kill("TERM", worker)
  Process.wait(worker)
end
Sidekiq::Queue.new.clear
puts "ok"
