import com.sonycsl.echo.Echo;
import com.sonycsl.echo.eoj.device.DeviceObject;
import com.sonycsl.echo.processing.defaults.DefaultHomeAirConditioner;
import com.sonycsl.echo.processing.defaults.DefaultNodeProfile;
import java.net.NetworkInterface;

/** OpenECHO: "Peer device" is the library's own air conditioner until its input ends. */
public final class Peer {
    public static void main(String[] arguments) throws Exception {
        DeviceObject[] devices = { new DefaultHomeAirConditioner() };
        Echo.start(new DefaultNodeProfile(), devices, NetworkInterface.getByName("echo"));
        System.out.println("ready: " + arguments[0]);
        while (System.in.read() != -1) {}
        System.exit(0);
    }
}
