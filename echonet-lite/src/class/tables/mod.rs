//! The tables: one file per class, kept by hand.
//!
//! Adding a class: its file, its feature in Cargo.toml, and its two lines here.

#[cfg(feature = "class-air-cleaner")]
mod air_cleaner;
#[cfg(feature = "class-air-conditioner-ventilation-fan")]
mod air_conditioner_ventilation_fan;
#[cfg(feature = "class-bath-heating-status-sensor")]
mod bath_heating_status_sensor;
#[cfg(feature = "class-bathroom-heater-dryer")]
mod bathroom_heater_dryer;
#[cfg(feature = "class-bidir-hv-smart-electric-energy-meter")]
mod bidir_hv_smart_electric_energy_meter;
#[cfg(feature = "class-co2-sensor")]
mod co2_sensor;
#[cfg(feature = "class-cold-or-hot-water-heat-source-equipment")]
mod cold_or_hot_water_heat_source_equipment;
#[cfg(feature = "class-commercial-air-conditioner-indoor-unit")]
mod commercial_air_conditioner_indoor_unit;
#[cfg(feature = "class-commercial-air-conditioner-outdoor-unit")]
mod commercial_air_conditioner_outdoor_unit;
#[cfg(feature = "class-commercial-showcase")]
mod commercial_showcase;
#[cfg(feature = "class-commercial-showcase-outdoor-unit")]
mod commercial_showcase_outdoor_unit;
#[cfg(feature = "class-controller")]
mod controller;
#[cfg(feature = "class-cooking-heater")]
mod cooking_heater;
#[cfg(feature = "class-crime-prevention-sensor")]
mod crime_prevention_sensor;
#[cfg(feature = "class-current-sensor")]
mod current_sensor;
#[cfg(feature = "class-dr-electric-energy-meter")]
mod dr_electric_energy_meter;
#[cfg(feature = "class-electric-blind-shade")]
mod electric_blind_shade;
#[cfg(feature = "class-electric-energy-sensor")]
mod electric_energy_sensor;
#[cfg(feature = "class-electric-lock")]
mod electric_lock;
#[cfg(feature = "class-electric-rain-door")]
mod electric_rain_door;
#[cfg(feature = "class-electric-water-heater")]
mod electric_water_heater;
#[cfg(feature = "class-emergency-button")]
mod emergency_button;
#[cfg(feature = "class-enhanced-lighting-system")]
mod enhanced_lighting_system;
#[cfg(feature = "class-ev-charger")]
mod ev_charger;
#[cfg(feature = "class-ev-charger-discharger")]
mod ev_charger_discharger;
#[cfg(feature = "class-floor-heater")]
mod floor_heater;
#[cfg(feature = "class-frequency-regulation")]
mod frequency_regulation;
#[cfg(feature = "class-fuel-cell")]
mod fuel_cell;
#[cfg(feature = "class-gas-meter")]
mod gas_meter;
#[cfg(feature = "class-general-lighting")]
mod general_lighting;
#[cfg(feature = "class-home-air-conditioner")]
mod home_air_conditioner;
#[cfg(feature = "class-human-detection-sensor")]
mod human_detection_sensor;
#[cfg(feature = "class-humidity-sensor")]
mod humidity_sensor;
#[cfg(feature = "class-hv-smart-electric-energy-meter")]
mod hv_smart_electric_energy_meter;
#[cfg(feature = "class-hybrid-water-heater")]
mod hybrid_water_heater;
#[cfg(feature = "class-illuminance-sensor")]
mod illuminance_sensor;
#[cfg(feature = "class-instantaneous-water-heater")]
mod instantaneous_water_heater;
#[cfg(feature = "class-lighting-system")]
mod lighting_system;
#[cfg(feature = "class-lv-smart-electric-energy-meter")]
mod lv_smart_electric_energy_meter;
#[cfg(feature = "class-mono-functional-lighting")]
mod mono_functional_lighting;
#[cfg(feature = "class-multiple-input-pcs")]
mod multiple_input_pcs;
mod node_profile;
#[cfg(feature = "class-power-distribution-board-metering")]
mod power_distribution_board_metering;
#[cfg(feature = "class-pv-power-generation")]
mod pv_power_generation;
#[cfg(feature = "class-refrigerator")]
mod refrigerator;
#[cfg(feature = "class-rice-cooker")]
mod rice_cooker;
mod shared;
#[cfg(feature = "class-smart-electric-energy-sub-meter")]
mod smart_electric_energy_sub_meter;
#[cfg(feature = "class-storage-battery")]
mod storage_battery;
mod super_class;
#[cfg(feature = "class-switch")]
mod switch;
#[cfg(feature = "class-temperature-sensor")]
mod temperature_sensor;
#[cfg(feature = "class-tv")]
mod tv;
#[cfg(feature = "class-ventilation-fan")]
mod ventilation_fan;
#[cfg(feature = "class-voc-sensor")]
mod voc_sensor;
#[cfg(feature = "class-washer-dryer")]
mod washer_dryer;
#[cfg(feature = "class-water-flow-meter")]
mod water_flow_meter;
#[cfg(feature = "class-watt-hour-meter")]
mod watt_hour_meter;

#[cfg(feature = "class-air-cleaner")]
pub use air_cleaner::AIR_CLEANER;
#[cfg(feature = "class-air-conditioner-ventilation-fan")]
pub use air_conditioner_ventilation_fan::AIR_CONDITIONER_VENTILATION_FAN;
#[cfg(feature = "class-bath-heating-status-sensor")]
pub use bath_heating_status_sensor::BATH_HEATING_STATUS_SENSOR;
#[cfg(feature = "class-bathroom-heater-dryer")]
pub use bathroom_heater_dryer::BATHROOM_HEATER_DRYER;
#[cfg(feature = "class-bidir-hv-smart-electric-energy-meter")]
pub use bidir_hv_smart_electric_energy_meter::BIDIR_HV_SMART_ELECTRIC_ENERGY_METER;
#[cfg(feature = "class-co2-sensor")]
pub use co2_sensor::CO2_SENSOR;
#[cfg(feature = "class-cold-or-hot-water-heat-source-equipment")]
pub use cold_or_hot_water_heat_source_equipment::COLD_OR_HOT_WATER_HEAT_SOURCE_EQUIPMENT;
#[cfg(feature = "class-commercial-air-conditioner-indoor-unit")]
pub use commercial_air_conditioner_indoor_unit::COMMERCIAL_AIR_CONDITIONER_INDOOR_UNIT;
#[cfg(feature = "class-commercial-air-conditioner-outdoor-unit")]
pub use commercial_air_conditioner_outdoor_unit::COMMERCIAL_AIR_CONDITIONER_OUTDOOR_UNIT;
#[cfg(feature = "class-commercial-showcase")]
pub use commercial_showcase::COMMERCIAL_SHOWCASE;
#[cfg(feature = "class-commercial-showcase-outdoor-unit")]
pub use commercial_showcase_outdoor_unit::COMMERCIAL_SHOWCASE_OUTDOOR_UNIT;
#[cfg(feature = "class-controller")]
pub use controller::CONTROLLER;
#[cfg(feature = "class-cooking-heater")]
pub use cooking_heater::COOKING_HEATER;
#[cfg(feature = "class-crime-prevention-sensor")]
pub use crime_prevention_sensor::CRIME_PREVENTION_SENSOR;
#[cfg(feature = "class-current-sensor")]
pub use current_sensor::CURRENT_SENSOR;
#[cfg(feature = "class-dr-electric-energy-meter")]
pub use dr_electric_energy_meter::DR_ELECTRIC_ENERGY_METER;
#[cfg(feature = "class-electric-blind-shade")]
pub use electric_blind_shade::ELECTRIC_BLIND_SHADE;
#[cfg(feature = "class-electric-energy-sensor")]
pub use electric_energy_sensor::ELECTRIC_ENERGY_SENSOR;
#[cfg(feature = "class-electric-lock")]
pub use electric_lock::ELECTRIC_LOCK;
#[cfg(feature = "class-electric-rain-door")]
pub use electric_rain_door::ELECTRIC_RAIN_DOOR;
#[cfg(feature = "class-electric-water-heater")]
pub use electric_water_heater::ELECTRIC_WATER_HEATER;
#[cfg(feature = "class-emergency-button")]
pub use emergency_button::EMERGENCY_BUTTON;
#[cfg(feature = "class-enhanced-lighting-system")]
pub use enhanced_lighting_system::ENHANCED_LIGHTING_SYSTEM;
#[cfg(feature = "class-ev-charger")]
pub use ev_charger::EV_CHARGER;
#[cfg(feature = "class-ev-charger-discharger")]
pub use ev_charger_discharger::EV_CHARGER_DISCHARGER;
#[cfg(feature = "class-floor-heater")]
pub use floor_heater::FLOOR_HEATER;
#[cfg(feature = "class-frequency-regulation")]
pub use frequency_regulation::FREQUENCY_REGULATION;
#[cfg(feature = "class-fuel-cell")]
pub use fuel_cell::FUEL_CELL;
#[cfg(feature = "class-gas-meter")]
pub use gas_meter::GAS_METER;
#[cfg(feature = "class-general-lighting")]
pub use general_lighting::GENERAL_LIGHTING;
#[cfg(feature = "class-home-air-conditioner")]
pub use home_air_conditioner::HOME_AIR_CONDITIONER;
#[cfg(feature = "class-human-detection-sensor")]
pub use human_detection_sensor::HUMAN_DETECTION_SENSOR;
#[cfg(feature = "class-humidity-sensor")]
pub use humidity_sensor::HUMIDITY_SENSOR;
#[cfg(feature = "class-hv-smart-electric-energy-meter")]
pub use hv_smart_electric_energy_meter::HV_SMART_ELECTRIC_ENERGY_METER;
#[cfg(feature = "class-hybrid-water-heater")]
pub use hybrid_water_heater::HYBRID_WATER_HEATER;
#[cfg(feature = "class-illuminance-sensor")]
pub use illuminance_sensor::ILLUMINANCE_SENSOR;
#[cfg(feature = "class-instantaneous-water-heater")]
pub use instantaneous_water_heater::INSTANTANEOUS_WATER_HEATER;
#[cfg(feature = "class-lighting-system")]
pub use lighting_system::LIGHTING_SYSTEM;
#[cfg(feature = "class-lv-smart-electric-energy-meter")]
pub use lv_smart_electric_energy_meter::LV_SMART_ELECTRIC_ENERGY_METER;
#[cfg(feature = "class-mono-functional-lighting")]
pub use mono_functional_lighting::MONO_FUNCTIONAL_LIGHTING;
#[cfg(feature = "class-multiple-input-pcs")]
pub use multiple_input_pcs::MULTIPLE_INPUT_PCS;
pub use node_profile::NODE_PROFILE;
#[cfg(feature = "class-power-distribution-board-metering")]
pub use power_distribution_board_metering::POWER_DISTRIBUTION_BOARD_METERING;
#[cfg(feature = "class-pv-power-generation")]
pub use pv_power_generation::PV_POWER_GENERATION;
#[cfg(feature = "class-refrigerator")]
pub use refrigerator::REFRIGERATOR;
#[cfg(feature = "class-rice-cooker")]
pub use rice_cooker::RICE_COOKER;
#[cfg(feature = "class-smart-electric-energy-sub-meter")]
pub use smart_electric_energy_sub_meter::SMART_ELECTRIC_ENERGY_SUB_METER;
#[cfg(feature = "class-storage-battery")]
pub use storage_battery::STORAGE_BATTERY;
pub use super_class::SUPER_CLASS;
#[cfg(feature = "class-switch")]
pub use switch::SWITCH;
#[cfg(feature = "class-temperature-sensor")]
pub use temperature_sensor::TEMPERATURE_SENSOR;
#[cfg(feature = "class-tv")]
pub use tv::TV;
#[cfg(feature = "class-ventilation-fan")]
pub use ventilation_fan::VENTILATION_FAN;
#[cfg(feature = "class-voc-sensor")]
pub use voc_sensor::VOC_SENSOR;
#[cfg(feature = "class-washer-dryer")]
pub use washer_dryer::WASHER_DRYER;
#[cfg(feature = "class-water-flow-meter")]
pub use water_flow_meter::WATER_FLOW_METER;
#[cfg(feature = "class-watt-hour-meter")]
pub use watt_hour_meter::WATT_HOUR_METER;

use super::device_class::Class;

/// Every class whose feature is on.
pub(super) static ALL: &[&Class] = &[
    &SUPER_CLASS,
    #[cfg(feature = "class-crime-prevention-sensor")]
    &CRIME_PREVENTION_SENSOR,
    #[cfg(feature = "class-emergency-button")]
    &EMERGENCY_BUTTON,
    #[cfg(feature = "class-human-detection-sensor")]
    &HUMAN_DETECTION_SENSOR,
    #[cfg(feature = "class-temperature-sensor")]
    &TEMPERATURE_SENSOR,
    #[cfg(feature = "class-humidity-sensor")]
    &HUMIDITY_SENSOR,
    #[cfg(feature = "class-bath-heating-status-sensor")]
    &BATH_HEATING_STATUS_SENSOR,
    #[cfg(feature = "class-co2-sensor")]
    &CO2_SENSOR,
    #[cfg(feature = "class-voc-sensor")]
    &VOC_SENSOR,
    #[cfg(feature = "class-electric-energy-sensor")]
    &ELECTRIC_ENERGY_SENSOR,
    #[cfg(feature = "class-current-sensor")]
    &CURRENT_SENSOR,
    #[cfg(feature = "class-illuminance-sensor")]
    &ILLUMINANCE_SENSOR,
    #[cfg(feature = "class-home-air-conditioner")]
    &HOME_AIR_CONDITIONER,
    #[cfg(feature = "class-ventilation-fan")]
    &VENTILATION_FAN,
    #[cfg(feature = "class-air-conditioner-ventilation-fan")]
    &AIR_CONDITIONER_VENTILATION_FAN,
    #[cfg(feature = "class-air-cleaner")]
    &AIR_CLEANER,
    #[cfg(feature = "class-commercial-air-conditioner-indoor-unit")]
    &COMMERCIAL_AIR_CONDITIONER_INDOOR_UNIT,
    #[cfg(feature = "class-commercial-air-conditioner-outdoor-unit")]
    &COMMERCIAL_AIR_CONDITIONER_OUTDOOR_UNIT,
    #[cfg(feature = "class-electric-blind-shade")]
    &ELECTRIC_BLIND_SHADE,
    #[cfg(feature = "class-electric-rain-door")]
    &ELECTRIC_RAIN_DOOR,
    #[cfg(feature = "class-electric-water-heater")]
    &ELECTRIC_WATER_HEATER,
    #[cfg(feature = "class-electric-lock")]
    &ELECTRIC_LOCK,
    #[cfg(feature = "class-instantaneous-water-heater")]
    &INSTANTANEOUS_WATER_HEATER,
    #[cfg(feature = "class-bathroom-heater-dryer")]
    &BATHROOM_HEATER_DRYER,
    #[cfg(feature = "class-pv-power-generation")]
    &PV_POWER_GENERATION,
    #[cfg(feature = "class-cold-or-hot-water-heat-source-equipment")]
    &COLD_OR_HOT_WATER_HEAT_SOURCE_EQUIPMENT,
    #[cfg(feature = "class-floor-heater")]
    &FLOOR_HEATER,
    #[cfg(feature = "class-fuel-cell")]
    &FUEL_CELL,
    #[cfg(feature = "class-storage-battery")]
    &STORAGE_BATTERY,
    #[cfg(feature = "class-ev-charger-discharger")]
    &EV_CHARGER_DISCHARGER,
    #[cfg(feature = "class-watt-hour-meter")]
    &WATT_HOUR_METER,
    #[cfg(feature = "class-water-flow-meter")]
    &WATER_FLOW_METER,
    #[cfg(feature = "class-gas-meter")]
    &GAS_METER,
    #[cfg(feature = "class-power-distribution-board-metering")]
    &POWER_DISTRIBUTION_BOARD_METERING,
    #[cfg(feature = "class-lv-smart-electric-energy-meter")]
    &LV_SMART_ELECTRIC_ENERGY_METER,
    #[cfg(feature = "class-hv-smart-electric-energy-meter")]
    &HV_SMART_ELECTRIC_ENERGY_METER,
    #[cfg(feature = "class-smart-electric-energy-sub-meter")]
    &SMART_ELECTRIC_ENERGY_SUB_METER,
    #[cfg(feature = "class-dr-electric-energy-meter")]
    &DR_ELECTRIC_ENERGY_METER,
    #[cfg(feature = "class-bidir-hv-smart-electric-energy-meter")]
    &BIDIR_HV_SMART_ELECTRIC_ENERGY_METER,
    #[cfg(feature = "class-general-lighting")]
    &GENERAL_LIGHTING,
    #[cfg(feature = "class-mono-functional-lighting")]
    &MONO_FUNCTIONAL_LIGHTING,
    #[cfg(feature = "class-ev-charger")]
    &EV_CHARGER,
    #[cfg(feature = "class-lighting-system")]
    &LIGHTING_SYSTEM,
    #[cfg(feature = "class-enhanced-lighting-system")]
    &ENHANCED_LIGHTING_SYSTEM,
    #[cfg(feature = "class-multiple-input-pcs")]
    &MULTIPLE_INPUT_PCS,
    #[cfg(feature = "class-hybrid-water-heater")]
    &HYBRID_WATER_HEATER,
    #[cfg(feature = "class-frequency-regulation")]
    &FREQUENCY_REGULATION,
    #[cfg(feature = "class-refrigerator")]
    &REFRIGERATOR,
    #[cfg(feature = "class-cooking-heater")]
    &COOKING_HEATER,
    #[cfg(feature = "class-rice-cooker")]
    &RICE_COOKER,
    #[cfg(feature = "class-commercial-showcase")]
    &COMMERCIAL_SHOWCASE,
    #[cfg(feature = "class-washer-dryer")]
    &WASHER_DRYER,
    #[cfg(feature = "class-commercial-showcase-outdoor-unit")]
    &COMMERCIAL_SHOWCASE_OUTDOOR_UNIT,
    #[cfg(feature = "class-switch")]
    &SWITCH,
    #[cfg(feature = "class-controller")]
    &CONTROLLER,
    #[cfg(feature = "class-tv")]
    &TV,
    &NODE_PROFILE,
];

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
