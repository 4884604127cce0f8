# The job that peer.rb queues and Sidekiq's process runs, with the server's port in the environment.
require "sidekiq"

url = "redis://127.0.0.1:#{ENV.fetch("REDIS_PORT")}/0"
Sidekiq.configure_client { |config| config.redis = { url: url, size: 5 } }
Sidekiq.configure_server do |config|
  config.redis = { url: url, size: 10 }
  config.average_scheduled_poll_interval = 1
end

class Add
  include Sidekiq::Worker
  sidekiq_options retry: 2
  sidekiq_retry_in { 1 }

  def perform(name, number, fails)
    Sidekiq.redis do |conn|
      tries = conn.hincrby("tries", name, 1)
      raise "as asked" if tries <= fails

      conn.hset("results", name, 2 * number)
    end
  end
end
