//! The tables: one file per class, kept by hand.
//!
//! Adding a class: its file, its feature in Cargo.toml, and its line here.

use super::device_class::Class;

mod shared;

/// A line per class, in the order of their codes: the file, the table in it, and the feature that brings it.
macro_rules! classes {
    ($($file:ident::$table:ident $(if $feature:literal)?;)*) => {
        $(
            $(#[cfg(feature = $feature)])?
            mod $file;
            $(#[cfg(feature = $feature)])?
            pub use $file::$table;
        )*

        /// Every class whose feature is on.
        pub(super) static ALL: &[&Class] = &[$($(#[cfg(feature = $feature)])? &$table,)*];
    };
}

classes! {
    super_class::SUPER_CLASS;
    crime_prevention_sensor::CRIME_PREVENTION_SENSOR if "class-crime-prevention-sensor";
    emergency_button::EMERGENCY_BUTTON if "class-emergency-button";
    human_detection_sensor::HUMAN_DETECTION_SENSOR if "class-human-detection-sensor";
    temperature_sensor::TEMPERATURE_SENSOR if "class-temperature-sensor";
    humidity_sensor::HUMIDITY_SENSOR if "class-humidity-sensor";
    bath_heating_status_sensor::BATH_HEATING_STATUS_SENSOR if "class-bath-heating-status-sensor";
    co2_sensor::CO2_SENSOR if "class-co2-sensor";
    voc_sensor::VOC_SENSOR if "class-voc-sensor";
    electric_energy_sensor::ELECTRIC_ENERGY_SENSOR if "class-electric-energy-sensor";
    current_sensor::CURRENT_SENSOR if "class-current-sensor";
    illuminance_sensor::ILLUMINANCE_SENSOR if "class-illuminance-sensor";
    home_air_conditioner::HOME_AIR_CONDITIONER if "class-home-air-conditioner";
    ventilation_fan::VENTILATION_FAN if "class-ventilation-fan";
    air_conditioner_ventilation_fan::AIR_CONDITIONER_VENTILATION_FAN if "class-air-conditioner-ventilation-fan";
    air_cleaner::AIR_CLEANER if "class-air-cleaner";
    commercial_air_conditioner_indoor_unit::COMMERCIAL_AIR_CONDITIONER_INDOOR_UNIT if "class-commercial-air-conditioner-indoor-unit";
    commercial_air_conditioner_outdoor_unit::COMMERCIAL_AIR_CONDITIONER_OUTDOOR_UNIT if "class-commercial-air-conditioner-outdoor-unit";
    electric_blind_shade::ELECTRIC_BLIND_SHADE if "class-electric-blind-shade";
    electric_rain_door::ELECTRIC_RAIN_DOOR if "class-electric-rain-door";
    electric_water_heater::ELECTRIC_WATER_HEATER if "class-electric-water-heater";
    electric_lock::ELECTRIC_LOCK if "class-electric-lock";
    instantaneous_water_heater::INSTANTANEOUS_WATER_HEATER if "class-instantaneous-water-heater";
    bathroom_heater_dryer::BATHROOM_HEATER_DRYER if "class-bathroom-heater-dryer";
    pv_power_generation::PV_POWER_GENERATION if "class-pv-power-generation";
    cold_or_hot_water_heat_source_equipment::COLD_OR_HOT_WATER_HEAT_SOURCE_EQUIPMENT if "class-cold-or-hot-water-heat-source-equipment";
    floor_heater::FLOOR_HEATER if "class-floor-heater";
    fuel_cell::FUEL_CELL if "class-fuel-cell";
    storage_battery::STORAGE_BATTERY if "class-storage-battery";
    ev_charger_discharger::EV_CHARGER_DISCHARGER if "class-ev-charger-discharger";
    watt_hour_meter::WATT_HOUR_METER if "class-watt-hour-meter";
    water_flow_meter::WATER_FLOW_METER if "class-water-flow-meter";
    gas_meter::GAS_METER if "class-gas-meter";
    power_distribution_board_metering::POWER_DISTRIBUTION_BOARD_METERING if "class-power-distribution-board-metering";
    lv_smart_electric_energy_meter::LV_SMART_ELECTRIC_ENERGY_METER if "class-lv-smart-electric-energy-meter";
    hv_smart_electric_energy_meter::HV_SMART_ELECTRIC_ENERGY_METER if "class-hv-smart-electric-energy-meter";
    smart_electric_energy_sub_meter::SMART_ELECTRIC_ENERGY_SUB_METER if "class-smart-electric-energy-sub-meter";
    dr_electric_energy_meter::DR_ELECTRIC_ENERGY_METER if "class-dr-electric-energy-meter";
    bidir_hv_smart_electric_energy_meter::BIDIR_HV_SMART_ELECTRIC_ENERGY_METER if "class-bidir-hv-smart-electric-energy-meter";
    general_lighting::GENERAL_LIGHTING if "class-general-lighting";
    mono_functional_lighting::MONO_FUNCTIONAL_LIGHTING if "class-mono-functional-lighting";
    ev_charger::EV_CHARGER if "class-ev-charger";
    lighting_system::LIGHTING_SYSTEM if "class-lighting-system";
    enhanced_lighting_system::ENHANCED_LIGHTING_SYSTEM if "class-enhanced-lighting-system";
    multiple_input_pcs::MULTIPLE_INPUT_PCS if "class-multiple-input-pcs";
    hybrid_water_heater::HYBRID_WATER_HEATER if "class-hybrid-water-heater";
    frequency_regulation::FREQUENCY_REGULATION if "class-frequency-regulation";
    refrigerator::REFRIGERATOR if "class-refrigerator";
    cooking_heater::COOKING_HEATER if "class-cooking-heater";
    rice_cooker::RICE_COOKER if "class-rice-cooker";
    commercial_showcase::COMMERCIAL_SHOWCASE if "class-commercial-showcase";
    washer_dryer::WASHER_DRYER if "class-washer-dryer";
    commercial_showcase_outdoor_unit::COMMERCIAL_SHOWCASE_OUTDOOR_UNIT if "class-commercial-showcase-outdoor-unit";
    switch::SWITCH if "class-switch";
    controller::CONTROLLER if "class-controller";
    tv::TV if "class-tv";
    node_profile::NODE_PROFILE;
}

const _: () = assert!(is_sorted(ALL), "class::all promises it");

const fn is_sorted(classes: &[&Class]) -> bool {
    let mut at = 1;
    while at < classes.len() {
        if classes[at - 1].code.to_u16() >= classes[at].code.to_u16() {
            return false;
        }
        at += 1;
    }
    true
}
